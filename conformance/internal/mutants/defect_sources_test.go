package mutants

import (
	"context"
	"io"
	"sync"

	"github.com/listwatch/listwatch"
)

// withoutErrors is a source whose watches end with io.EOF instead of an error.
type withoutErrors struct{ listwatch.Source }

// Describe returns the description of the wrapped source.
func (w *withoutErrors) Describe() listwatch.Description { return listwatch.Describe(w.Source) }

// Watch returns a watcher that ends at once if the watch cannot be opened.
func (w *withoutErrors) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	watcher, err := w.Source.Watch(ctx, q)
	if err != nil {
		return &errorlessWatcher{}, nil
	}
	return &errorlessWatcher{watcher}, nil
}

type errorlessWatcher struct{ listwatch.Watcher }

// Next replaces errors with io.EOF.
func (e *errorlessWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if e.Watcher == nil {
		return 0, io.EOF
	}
	n, err := e.Watcher.Next(ctx, dst)
	if err != nil && ctx.Err() == nil {
		err = io.EOF
	}
	return n, err
}

// Close closes the wrapped watcher, if any.
func (e *errorlessWatcher) Close() error {
	if e.Watcher == nil {
		return nil
	}
	return e.Watcher.Close()
}

// staleInitialState returns a source whose watches start with the state at the time of the
// first watch.
func staleInitialState(s listwatch.Source) listwatch.Source { return &staleSource{Source: s} }

type staleSource struct {
	listwatch.Source

	mu    sync.Mutex
	first listwatch.Page // guarded by mu
}

// Describe returns the description of the wrapped source.
func (s *staleSource) Describe() listwatch.Description { return listwatch.Describe(s.Source) }

// Watch sends the state of the first call as initial events and then the later changes.
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
	q.Start, q.Version, q.InitialEvents = listwatch.StartAt, s.first.Version, listwatch.InitialEventsNo
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
	return &changedWatcher{Watcher: w, Change: same, Pending: pending}, nil
}
