package relay_test

import (
	"context"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/listwatchtest"
)

// A faultySource extends [listwatchtest.Source]: it can also inject events into its watches, and
// refuse to resume at old versions.
type faultySource struct {
	*listwatchtest.Source

	mu sync.Mutex
	// Guarded by mu.
	watchers   map[*faultyWatcher]struct{}
	badVersion listwatch.Version // watches from an earlier version fail with badErr
	badErr     error
	lateErrs   int // the number of watches that return badErr only after errDelay
}

// errDelay is longer than the time that a relay waits for the error of a watch.
const errDelay = 2 * time.Second

func newFaultySource(s listwatch.Source) *faultySource {
	return &faultySource{Source: listwatchtest.New(s), watchers: make(map[*faultyWatcher]struct{})}
}

// List takes some time, so that concurrent reads overlap.
func (s *faultySource) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
	return s.Source.List(ctx, q)
}

func (s *faultySource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	watcher := &faultyWatcher{Watcher: w, source: s, injected: make(chan listwatch.Event, 8)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[watcher] = struct{}{}
	if q.Start == listwatch.StartAt && !q.SendsInitialEvents() && q.Version < s.badVersion {
		watcher.err = s.badErr
		if s.lateErrs > 0 {
			s.lateErrs--
			watcher.errDelay = errDelay
		}
	}
	return watcher, nil
}

// setDown ends all watches with err and makes requests fail with it. If err is nil, requests
// succeed again.
func (s *faultySource) setDown(err error) {
	s.Fail(err)
	if err != nil {
		s.Cut(err)
	}
}

// failAt makes watches that resume before version v fail with err.
func (s *faultySource) failAt(v listwatch.Version, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.badVersion, s.badErr = v, err
}

// failLate delays the failures that failAt causes by errDelay, for the next n watches.
func (s *faultySource) failLate(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lateErrs = n
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

// A faultyWatcher is not a Poller, just as the watcher of a client.Remote is not a Poller.
type faultyWatcher struct {
	listwatch.Watcher
	source   *faultySource
	err      error // returned by Next after errDelay, unless nil
	errDelay time.Duration
	injected chan listwatch.Event
}

func (w *faultyWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if w.err != nil {
		select {
		case <-time.After(w.errDelay):
			return 0, w.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
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
		return n, err
	}
}

func (w *faultyWatcher) Close() error {
	w.source.mu.Lock()
	delete(w.source.watchers, w)
	w.source.mu.Unlock()
	return w.Watcher.Close()
}
