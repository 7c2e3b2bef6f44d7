package mutants

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
)

// resumeMutants break the cases of resourceVersion and resuming.
var resumeMutants = []Mutant{
	{"resumes-one-late", []string{
		"resume/from-rv", "resume/restart", "resume/cross-transport", "resume/cross-replica", "resume/list-then-watch", "resume/expired-never-skips",
	}, cases.Interceptors{Source: onWatches(func(q *listwatch.Query) {
		if q.Start == listwatch.At {
			q.Version++
		}
	})}},
	{"resumes-one-early", []string{"resume/from-rv", "resume/restart", "resume/last-event-id", "resume/rv-exact-no-synthetic"}, cases.Interceptors{
		Source: onWatches(func(q *listwatch.Query) {
			if q.Start == listwatch.At {
				q.Version--
			}
		}),
	}},
	{"shows-an-old-state", []string{"resume/rv-unset"}, cases.Interceptors{Source: stale}},
	{"repeats-everything", []string{"resume/rv-zero", "resume/from-rv"}, cases.Interceptors{
		Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e, e} }),
	}},
	{"makes-up-a-state", []string{"resume/rv-exact-no-synthetic"}, cases.Interceptors{
		Source: onWatches(func(q *listwatch.Query) { q.InitialEvents = listwatch.Yes }),
	}},
	{"goes-on-where-history-begins", []string{
		"resume/expired", "resume/expired-never-skips", "resume/expired-never-skips-bytes", "resume/server-restart",
	}, cases.Interceptors{Source: func(s listwatch.Source) listwatch.Source { return &lenient{s} }}},
	{"ends-where-it-was-overrun", []string{"resume/expired-during-replay"}, cases.Interceptors{Source: func(s listwatch.Source) listwatch.Source { return &mute{s} }}},
	{"loses-the-twentieth-event", []string{"resume/compact-while-watching"}, cases.Interceptors{
		Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
			if seen == 21 || e.Type == listwatch.Modified && seen == 1 {
				return nil
			}
			return []listwatch.Event{e}
		}),
	}},
	{"takes-the-future-for-now", []string{"resume/future-rv", "resume/list-future-rv", "resume/match-rules"}, cases.Interceptors{
		Handler: onQuery(func(q url.Values) { q.Del("resourceVersion"); q.Del("resourceVersionMatch") }),
	}},
	{"takes-any-version", []string{"resume/bad-rv"}, cases.Interceptors{Handler: onQuery(func(q url.Values) {
		if _, err := listwatch.ParseVersion(q.Get("resourceVersion")); err != nil {
			q.Del("resourceVersion")
		}
	})}},
	{"versions-have-a-zero-in-front", []string{"resume/rv-comparable"}, cases.Interceptors{Source: onData(`"resourceVersion":"`, `"resourceVersion":"0`)}},
	{"knows-no-last-event-id", []string{"resume/last-event-id"}, cases.Interceptors{
		Handler: onRequest(func(r *http.Request) { r.Header.Del("Last-Event-Id") }),
	}},
	{"client-does-not-say-what-is-wrong", []string{"resume/rv-opaque-client", "resume/store-reset"}, cases.Interceptors{
		Client: func(r *client.Remote) listwatch.Source { return &deaf{r} },
	}},
}

// lenient is a source that takes a version it knows nothing of for the newest.
type lenient struct{ listwatch.Source }

// Describe is that of the source below.
func (l *lenient) Describe() listwatch.Description { return listwatch.Describe(l.Source) }

// Watch begins now where it can't begin there.
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
	q.Start, q.Version, q.InitialEvents = listwatch.Newest, 0, listwatch.No
	return q
}

type lenientWatcher struct {
	listwatch.Watcher
	from  listwatch.Source
	query listwatch.Query
}

// Next goes on from now where history is gone.
func (w *lenientWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	if !errors.Is(err, listwatch.Expired) {
		return n, err
	}
	again, failed := w.from.Watch(ctx, (&lenient{}).now(w.query))
	if failed != nil {
		return 0, failed
	}
	_ = w.Watcher.Close()
	w.Watcher = again
	return w.Watcher.Next(ctx, dst)
}
