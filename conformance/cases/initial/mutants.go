package initial

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
)

// Mutants break the cases of initial events.
var Mutants = []mutation.Mutant{
	{Name: "initial-events-lose-the-second", Breaks: []string{
		"initial/stream", "initial/snapshot-exact", "initial/legacy", "initial/writes-during",
	}, Defect: reference.Interceptors{Source: mutation.OnEvents(func(e listwatch.Event, seen int) []listwatch.Event {
		if e.Initial && seen == 1 {
			return nil
		}
		return []listwatch.Event{e}
	})}},
	{Name: "initial-events-of-before", Breaks: []string{"initial/fresh", "initial/not-older-than"}, Defect: reference.Interceptors{Source: mutation.Stale}},
	{Name: "marks-the-end-twice", Breaks: []string{"initial/one-end-marker"}, Defect: reference.Interceptors{Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if e.Type == listwatch.Modified {
			return []listwatch.Event{e, mutation.Synced(e.Version)}
		}
		return []listwatch.Event{e}
	})}},
	{Name: "takes-any-parameters", Breaks: []string{"initial/match-required", "initial/match-alone", "initial/forbidden-on-list"}, Defect: reference.Interceptors{Handler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			q.Del("sendInitialEvents")
			q.Del("resourceVersionMatch")
			r.URL.RawQuery = q.Encode()
			next.ServeHTTP(w, r)
		})
	}}},
	{Name: "always-sends-the-state", Breaks: []string{"initial/false"}, Defect: reference.Interceptors{Source: mutation.OnWatches(func(q *listwatch.Query) { q.InitialEvents = listwatch.Yes })}},
	{Name: "never-marks-the-end", Breaks: []string{"initial/empty", "initial/stream"}, Defect: reference.Interceptors{Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if e.Type == listwatch.Synced {
			return nil
		}
		return []listwatch.Event{e}
	})}},
	{Name: "client-resumes-from-initial-events", Breaks: []string{"initial/cut-short"}, Defect: reference.Interceptors{Client: func(r *client.Remote) listwatch.Source { return &hasty{r} }}},
	{Name: "client-asks-again-and-again", Breaks: []string{"initial/fallback"}, Defect: reference.Interceptors{Client: func(r *client.Remote) listwatch.Source { return &forgetful{r} }}},
}

// hasty is a client that takes the version of an initial event for one to resume from.
type hasty struct{ *client.Remote }

// Watch opens a watch from the version of the first event that it was shown.
func (h *hasty) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := h.Remote.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &hastyWatcher{Watcher: w, from: h.Remote}, nil
}

type hastyWatcher struct {
	listwatch.Watcher
	from *client.Remote
	seen int
}

// Next goes on from the second event, by another watch.
func (w *hastyWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst[:1])
	if w.seen++; w.seen == 2 && err == nil {
		next, err := w.from.Watch(ctx, listwatch.Query{Start: listwatch.At, Version: dst[0].Version, Bookmarks: true})
		if err != nil {
			return 0, err
		}
		_ = w.Watcher.Close()
		w.Watcher = next
	}
	return n, err
}

// forgetful is a client that learns nothing of servers.
type forgetful struct{ remote *client.Remote }

// List is that of a new client.
func (f *forgetful) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return f.remote.List(ctx, q)
}

// Watch is that of a new client.
func (f *forgetful) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	fresh := &client.Remote{URL: f.remote.URL, Network: f.remote.Network, Transports: f.remote.Transports}
	return fresh.Watch(ctx, q)
}
