package relay

import (
	"context"
	"sync"

	"github.com/listwatch/listwatch"
)

// An upstreamWatcher is a watch of the upstream that the relay can end with an error.
type upstreamWatcher struct {
	// Immutable once the watch is open.
	listwatch.Watcher
	upstream *upstream
	poller   listwatch.Poller // the Watcher as a Poller; nil if the Watcher is no Poller
	signal   chan struct{}    // capacity 1; holds a token when the Poller must be polled
	onWake   func()           // calls wake; allocated once

	synced bool // the state is complete; guarded by upstream.mu

	// Owned by the reader.
	pending  []listwatch.Event // returned before the events of Watcher
	first    <-chan firstRead  // returned after pending; nil once it was returned
	position listwatch.Version // the version of the newest bookmark made by nextFromPoller

	mu      sync.Mutex
	failure error // guarded by mu; set by fail
}

// Next implements [listwatch.Watcher].
func (w *upstreamWatcher) Next(ctx context.Context, dst []listwatch.Event) (n int, err error) {
	for n == 0 && err == nil {
		n, err = w.next(ctx, dst)
	}
	u := w.upstream
	if n > 0 && !dst[n-1].Initial && dst[n-1].Version >= u.progress.end {
		u.progress = backfillProgress{}
	}
	if err == nil {
		return n, nil
	}
	if failure := w.failed(); failure != nil {
		return n, failure
	}
	u.failed(err)
	return n, err
}

// next is like Next, but it may return neither events nor an error.
func (w *upstreamWatcher) next(ctx context.Context, dst []listwatch.Event) (n int, err error) {
	switch {
	case len(w.pending) > 0:
		n = copy(dst, w.pending)
		if w.pending = w.pending[n:]; len(w.pending) == 0 {
			w.pending = nil // release the events
		}
		return n, nil
	case w.first != nil:
		select {
		case r := <-w.first:
			w.pending, w.first = r.events, nil
			return 0, r.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	case w.poller != nil:
		return w.nextFromPoller(ctx, dst)
	}
	return w.Watcher.Next(ctx, dst)
}

// nextFromPoller implements Next if the wrapped Watcher is a Poller. It returns a bookmark when the
// Poller advances without an event.
func (w *upstreamWatcher) nextFromPoller(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		if n, err := w.poller.Poll(dst); n > 0 || err != nil {
			return n, err
		}
		if at := w.poller.Position(); at > w.position {
			w.position = at
			dst[0] = listwatch.NewBookmark(listwatch.Describe(w.upstream.Source), at, false)
			return 1, nil
		}
		w.poller.Wake(w.onWake)
		select {
		case <-w.signal:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (w *upstreamWatcher) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// fail ends the watch with err. Only the first call has an effect.
func (w *upstreamWatcher) fail(err error) {
	w.mu.Lock()
	if w.failure == nil {
		w.failure = err
	}
	w.mu.Unlock()
	_ = w.Watcher.Close() // Next returns err, so the error of Close is not needed
	w.wake()
}

func (w *upstreamWatcher) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// Close implements [listwatch.Watcher].
func (w *upstreamWatcher) Close() error {
	w.upstream.closed(w)
	return w.Watcher.Close()
}
