package mutants

import (
	"context"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
)

// initialMutants break the cases of initial events.
var initialMutants = []Mutant{
	{"initial-events-lose-the-second", []string{
		"initial/stream", "initial/snapshot-exact", "initial/legacy", "initial/writes-during",
	}, cases.Interceptors{Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
		if e.Initial && seen == 1 {
			return nil
		}
		return []listwatch.Event{e}
	})}},
	{"initial-events-of-before", []string{"initial/fresh", "initial/not-older-than"}, cases.Interceptors{Source: stale}},
	{"marks-the-end-twice", []string{"initial/one-end-marker"}, cases.Interceptors{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if e.Type == listwatch.Modified {
			return []listwatch.Event{e, synced(e.Version)}
		}
		return []listwatch.Event{e}
	})}},
	{"takes-any-parameters", []string{"initial/match-required", "initial/match-alone", "initial/forbidden-on-list"}, cases.Interceptors{Handler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			q.Del("sendInitialEvents")
			q.Del("resourceVersionMatch")
			r.URL.RawQuery = q.Encode()
			next.ServeHTTP(w, r)
		})
	}}},
	{"always-sends-the-state", []string{"initial/false"}, cases.Interceptors{Source: onWatches(func(q *listwatch.Query) { q.InitialEvents = listwatch.Yes })}},
	{"never-marks-the-end", []string{"initial/empty", "initial/stream"}, cases.Interceptors{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
		if e.Type == listwatch.Synced {
			return nil
		}
		return []listwatch.Event{e}
	})}},
	{"client-resumes-from-initial-events", []string{"initial/cut-short"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source { return &hasty{r} }}},
	{"client-asks-again-and-again", []string{"initial/fallback"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source { return &forgetful{r} }}},
}

// stale returns a source whose watches show the state as it was when the source was first asked.
func stale(s listwatch.Source) listwatch.Source { return &staleSource{Source: s} }

type staleSource struct {
	listwatch.Source

	mu    sync.Mutex
	first listwatch.Page // guarded by mu
}

// Describe is that of the source below.
func (s *staleSource) Describe() listwatch.Description { return listwatch.Describe(s.Source) }

// Watch begins with the state of the first call.
func (s *staleSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.Version == 0 {
		page, err := s.List(ctx, listwatch.Query{})
		if err != nil {
			return nil, err
		}
		s.first = page
	}
	q.Start, q.Version, q.InitialEvents = listwatch.At, s.first.Version, listwatch.No
	w, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	pending := []listwatch.Event{}
	for _, o := range s.first.Items {
		pending = append(pending, listwatch.Event{Type: listwatch.Added, Initial: true, Object: o, Version: o.Version})
	}
	pending = append(pending, synced(s.first.Version))
	same := func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e} }
	return &changedWatcher{Watcher: w, change: same, pending: pending}, nil
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
