package resume

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
)

// Mutants break the cases of resourceVersion and resuming.
var Mutants = []mutation.Mutant{
	{Name: "resumes-one-late", Breaks: []string{
		"resume/from-rv", "resume/restart", "resume/cross-transport", "resume/cross-replica", "resume/list-then-watch", "resume/expired-never-skips",
	}, Defect: reference.Interceptors{Source: mutation.OnWatches(func(q *listwatch.Query) {
		if q.Start == listwatch.At {
			q.Version++
		}
	})}},
	{Name: "resumes-one-early", Breaks: []string{"resume/from-rv", "resume/restart", "resume/last-event-id", "resume/rv-exact-no-synthetic"}, Defect: reference.Interceptors{
		Source: mutation.OnWatches(func(q *listwatch.Query) {
			if q.Start == listwatch.At {
				q.Version--
			}
		}),
	}},
	{Name: "shows-an-old-state", Breaks: []string{"resume/rv-unset"}, Defect: reference.Interceptors{Source: mutation.Stale}},
	{Name: "repeats-everything", Breaks: []string{"resume/rv-zero", "resume/from-rv"}, Defect: reference.Interceptors{
		Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e, e} }),
	}},
	{Name: "makes-up-a-state", Breaks: []string{"resume/rv-exact-no-synthetic"}, Defect: reference.Interceptors{
		Source: mutation.OnWatches(func(q *listwatch.Query) { q.InitialEvents = listwatch.Yes }),
	}},
	{Name: "goes-on-where-history-begins", Breaks: []string{
		"resume/expired", "resume/expired-never-skips", "resume/expired-never-skips-bytes", "resume/server-restart",
	}, Defect: reference.Interceptors{Source: func(s listwatch.Source) listwatch.Source { return &lenient{s} }}},
	{Name: "ends-where-it-was-overrun", Breaks: []string{"resume/expired-during-replay"}, Defect: reference.Interceptors{Source: func(s listwatch.Source) listwatch.Source { return &mutation.Mute{Source: s} }}},
	{Name: "loses-the-twentieth-event", Breaks: []string{"resume/compact-while-watching"}, Defect: reference.Interceptors{
		Source: mutation.OnEvents(func(e listwatch.Event, seen int) []listwatch.Event {
			if seen == 21 || e.Type == listwatch.Modified && seen == 1 {
				return nil
			}
			return []listwatch.Event{e}
		}),
	}},
	{Name: "takes-the-future-for-now", Breaks: []string{"resume/future-rv", "resume/list-future-rv", "resume/match-rules"}, Defect: reference.Interceptors{
		Handler: mutation.OnQuery(func(q url.Values) { q.Del("resourceVersion"); q.Del("resourceVersionMatch") }),
	}},
	{Name: "takes-any-version", Breaks: []string{"resume/bad-rv"}, Defect: reference.Interceptors{Handler: mutation.OnQuery(func(q url.Values) {
		if _, err := listwatch.ParseVersion(q.Get("resourceVersion")); err != nil {
			q.Del("resourceVersion")
		}
	})}},
	{Name: "versions-have-a-zero-in-front", Breaks: []string{"resume/rv-comparable"}, Defect: reference.Interceptors{Source: mutation.OnData(`"resourceVersion":"`, `"resourceVersion":"0`)}},
	{Name: "knows-no-last-event-id", Breaks: []string{"resume/last-event-id"}, Defect: reference.Interceptors{
		Handler: mutation.OnRequest(func(r *http.Request) { r.Header.Del("Last-Event-Id") }),
	}},
	{Name: "client-does-not-say-what-is-wrong", Breaks: []string{"resume/rv-opaque-client", "resume/store-reset"}, Defect: reference.Interceptors{
		Client: func(r *client.Remote) listwatch.Source { return &mutation.Deaf{Remote: r} },
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
