package mutants

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
)

// resumeMutants are servers and clients with one defect each, which the cases about versions, lists
// and resuming must detect.
var resumeMutants = []mutant{
	{
		Name: "resumes-one-late",
		Breaks: []string{
			"resume/from-rv", "resume/restart", "resume/cross-transport", "resume/cross-replica",
			"resume/list-then-watch", "resume/expired-never-skips",
		},
		Defect: defect{Source: onWatches(func(q *listwatch.Query) {
			if q.Start == listwatch.StartAt {
				q.Version++
			}
		})},
	},
	{
		Name:   "resumes-one-early",
		Breaks: []string{"resume/from-rv", "resume/restart", "resume/last-event-id", "resume/rv-exact-no-synthetic"},
		Defect: defect{
			Source: onWatches(func(q *listwatch.Query) {
				if q.Start == listwatch.StartAt {
					q.Version--
				}
			}),
		},
	},
	{
		Name: "sends-stale-initial-state", Breaks: []string{"resume/rv-unset"},
		Defect: defect{Source: staleInitialState},
	},
	{
		Name: "repeats-every-event", Breaks: []string{"resume/rv-zero", "resume/from-rv"},
		Defect: defect{
			Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e, e} }),
		},
	},
	{
		Name: "sends-unrequested-initial-events", Breaks: []string{"resume/rv-exact-no-synthetic"},
		Defect: defect{
			Source: onWatches(func(q *listwatch.Query) { q.InitialEvents = listwatch.InitialEventsYes }),
		},
	},
	{
		Name: "skips-expired-history",
		Breaks: []string{
			"resume/expired", "resume/expired-never-skips", "resume/expired-never-skips-bytes",
			"resume/server-restart",
		},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source { return &lenient{s} }},
	},
	{
		Name: "keeps-the-epoch-in-a-restart", Breaks: []string{"resume/server-restart"},
		Defect: defect{Handler: onHeader(func(h http.Header) { h.Set(transport.EpochHeader, "1") })},
	},
	{
		Name: "hides-expiry-during-replay", Breaks: []string{"resume/expired-during-replay"},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source { return &withoutErrors{Source: s} }},
	},
	{
		Name: "client-trusts-its-version-forever", Breaks: []string{"resume/silent-ends"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source { return &trustingClient{r} }},
	},
	{
		Name: "loses-the-twentieth-event", Breaks: []string{"resume/compact-while-watching"},
		Defect: defect{
			Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
				if seen == 21 || e.Type == listwatch.Modified && seen == 1 {
					return nil
				}
				return []listwatch.Event{e}
			}),
		},
	},
	{
		Name:   "ignores-resource-version",
		Breaks: []string{"resume/future-rv", "resume/list-future-rv", "resume/match-rules"},
		Defect: defect{
			Handler: onQuery(func(q url.Values) { q.Del("resourceVersion"); q.Del("resourceVersionMatch") }),
		},
	},
	{
		Name: "accepts-invalid-versions", Breaks: []string{"resume/bad-rv"},
		Defect: defect{Handler: onQuery(func(q url.Values) {
			if _, err := listwatch.ParseVersion(q.Get("resourceVersion")); err != nil {
				q.Del("resourceVersion")
			}
		})},
	},
	{
		Name: "versions-have-a-leading-zero", Breaks: []string{"resume/rv-comparable"},
		Defect: defect{Source: onData(`"resourceVersion":"`, `"resourceVersion":"0`)},
	},
	{
		Name: "ignores-last-event-id", Breaks: []string{"resume/last-event-id"},
		Defect: defect{
			Handler: onRequest(func(r *http.Request) { r.Header.Del("Last-Event-Id") }),
		},
	},
	{
		Name: "prefers-the-url-to-last-event-id", Breaks: []string{"resume/last-event-id"},
		Defect: defect{
			Handler: onRequest(func(r *http.Request) {
				if r.URL.Query().Has("resourceVersion") {
					r.Header.Del("Last-Event-Id")
				}
			}),
		},
	},
	{
		Name: "client-hides-error-codes", Breaks: []string{"resume/rv-opaque-client", "resume/store-reset"},
		Defect: defect{
			Client: func(r *client.Remote) listwatch.Source { return &withoutErrorCodes{Remote: r} },
		},
	},
}

// lenient is a source that treats an expired version as the newest version.
type lenient struct{ listwatch.Source }

// Describe returns the description of the wrapped source.
func (l *lenient) Describe() listwatch.Description { return listwatch.Describe(l.Source) }

// Watch starts at the newest version if the requested version has expired.
func (l *lenient) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := l.Source.Watch(ctx, q)
	if err == nil {
		return &lenientWatcher{Watcher: w, from: l.Source, query: q}, nil
	}
	if !errors.Is(err, listwatch.Expired) {
		return nil, err
	}
	return l.Source.Watch(ctx, l.now(q))
}

func (l *lenient) now(q listwatch.Query) listwatch.Query {
	q.Start, q.Version, q.InitialEvents = listwatch.StartNewest, 0, listwatch.InitialEventsNo
	return q
}

type lenientWatcher struct {
	listwatch.Watcher
	from  listwatch.Source
	query listwatch.Query
}

// Next continues at the newest version if the history has expired.
func (l *lenientWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := l.Watcher.Next(ctx, dst)
	if !errors.Is(err, listwatch.Expired) {
		return n, err
	}
	next, err := l.from.Watch(ctx, (&lenient{}).now(l.query))
	if err != nil {
		return 0, err
	}
	_ = l.Watcher.Close()
	l.Watcher = next
	return l.Watcher.Next(ctx, dst)
}

// trustingClient is a client that never gives up its version by itself. It does so only if the
// server reports that the version has expired.
type trustingClient struct{ *client.Remote }

func (t *trustingClient) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := t.Remote.Watch(ctx, q)
	return &trustingWatcher{remote: t.Remote, query: q, current: w}, err
}

// A trustingWatcher opens its watch again when it expires. Only Next uses remote and query.
type trustingWatcher struct {
	remote *client.Remote
	query  listwatch.Query

	mu      sync.Mutex // Close may be called during Next
	current listwatch.Watcher
}

func (t *trustingWatcher) watcher() listwatch.Watcher {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

func (t *trustingWatcher) Close() error { return t.watcher().Close() }

func (t *trustingWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		n, err := t.watcher().Next(ctx, dst)
		if n > 0 {
			t.query.Version = dst[n-1].Version
		}
		if !errors.Is(err, listwatch.Expired) || listwatch.AsError(err).Remote || t.query.Start != listwatch.StartAt {
			return n, err
		}
		_ = t.Close()
		w, err := t.remote.Watch(ctx, t.query)
		if err != nil {
			return 0, err
		}
		t.mu.Lock()
		t.current = w
		t.mu.Unlock()
	}
}
