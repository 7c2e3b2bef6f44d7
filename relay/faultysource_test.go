package relay_test

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A faultySource forwards requests to a source that a test can replace. The test can also
// make requests fail, end watches with an error, and inject events into them.
type faultySource struct {
	mu sync.Mutex
	// Guarded by mu.
	source     listwatch.Source
	err        error // the error of every request, or nil if requests succeed
	watchers   map[*faultyWatcher]struct{}
	watches    int
	lists      int
	badVersion listwatch.Version // watches from an earlier version fail with badErr
	badErr     error
}

func newFaultySource(s listwatch.Source) *faultySource {
	return &faultySource{source: s, watchers: make(map[*faultyWatcher]struct{})}
}

func (s *faultySource) get() (listwatch.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source, s.err
}

func (s *faultySource) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	source, err := s.get()
	if err != nil {
		return listwatch.Page{}, err
	}
	s.mu.Lock()
	s.lists++
	s.mu.Unlock()
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
	return source.List(ctx, q)
}

func (s *faultySource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	source, err := s.get()
	if err != nil {
		return nil, err
	}
	w, err := source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	watcher := &faultyWatcher{Watcher: w, source: s, ctx: ctx, cancel: cancel, injected: make(chan listwatch.Event, 8)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches++
	s.watchers[watcher] = struct{}{}
	if q.Start == listwatch.At && !q.SendsInitialEvents() && q.Version < s.badVersion {
		watcher.cancel(s.badErr)
	}
	return watcher, nil
}

func (s *faultySource) Describe() listwatch.Description {
	source, _ := s.get()
	return listwatch.Describe(source)
}

// setDown ends all watches with err and makes requests fail with it. If err is nil, requests
// succeed again.
func (s *faultySource) setDown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	for w := range s.watchers {
		if err != nil {
			w.cancel(err)
		}
	}
}

// endWatches ends all watches with err.
func (s *faultySource) endWatches(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		w.cancel(err)
	}
}

// failAt makes watches that resume before version v fail with err.
func (s *faultySource) failAt(v listwatch.Version, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.badVersion, s.badErr = v, err
}

func (s *faultySource) replace(to listwatch.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source = to
}

// inject adds events to all open watches.
func (s *faultySource) inject(events ...listwatch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		for _, e := range events {
			w.injected <- e
		}
	}
}

func (s *faultySource) counts() (watches, lists int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches, s.lists
}

// A faultyWatcher is not a Poller, just as the watcher of a client.Remote is not a Poller.
type faultyWatcher struct {
	listwatch.Watcher
	source   *faultySource
	ctx      context.Context
	cancel   context.CancelCauseFunc
	injected chan listwatch.Event
}

func (w *faultyWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	injected := make(chan listwatch.Event, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case e := <-w.injected:
			injected <- e
			cancel()
		case <-bounded.Done():
		}
	}()
	n, err := w.Watcher.Next(bounded, dst)
	cancel()
	<-done
	select {
	case e := <-injected:
		if n == len(dst) {
			n-- // drops an event if dst is full, which does not happen in these tests
		}
		dst[n] = e
		return n + 1, nil
	default:
	}
	if err != nil && ctx.Err() == nil && w.ctx.Err() != nil {
		return n, context.Cause(w.ctx)
	}
	return n, err
}

func (w *faultyWatcher) Close() error {
	w.source.mu.Lock()
	delete(w.source.watchers, w)
	w.source.mu.Unlock()
	return w.Watcher.Close()
}
