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
	pending        []listwatch.Event // returned before the events of Watcher
	backfillStart  listwatch.Version // the version at which the backfill started
	backfillEnd    listwatch.Version // the target of the backfill; zero once it is reached
	secondBackfill bool              // the previous backfill expired
	position       listwatch.Version // the version of the newest bookmark made by nextFromPoller

	mu      sync.Mutex
	failure error // guarded by mu; set by fail
}

// Next implements [listwatch.Watcher].
func (w *upstreamWatcher) Next(ctx context.Context, dst []listwatch.Event) (n int, err error) {
	switch {
	case len(w.pending) > 0:
		n = copy(dst, w.pending)
		if w.pending = w.pending[n:]; len(w.pending) == 0 {
			w.pending = nil // release the events
		}
	case w.poller != nil:
		n, err = w.nextFromPoller(ctx, dst)
	default:
		n, err = w.Watcher.Next(ctx, dst)
	}
	if n > 0 && !dst[n-1].Initial && dst[n-1].Version >= w.backfillEnd {
		w.backfillEnd = 0
	}
	if err == nil {
		return n, nil
	}
	if failure := w.failed(); failure != nil {
		return n, failure
	}
	if w.backfillEnd != 0 {
		w.backfillFailed(err)
	}
	return n, err
}

// backfillFailed decides how the watch after this one begins. The backfill of this watch has failed
// with err.
func (w *upstreamWatcher) backfillFailed(err error) {
	switch code := listwatch.CodeOf(err); {
	case code == listwatch.Expired && !w.secondBackfill:
		w.upstream.backfillExpired(w.backfillStart)
	case code == listwatch.Expired || code == listwatch.Corrupt || code == listwatch.Unsupported:
		w.upstream.skipBackfill() // another backfill would fail for the same reason
	}
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
