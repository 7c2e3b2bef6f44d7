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
	poller   listwatch.Poller // the Watcher as a Poller; nil if it is not a Poller
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

func (u *upstreamWatcher) Next(ctx context.Context, dst []listwatch.Event) (n int, err error) {
	for n == 0 && err == nil {
		n, err = u.next(ctx, dst)
	}
	upstream := u.upstream
	if n > 0 && !dst[n-1].Initial && dst[n-1].Version >= upstream.progress.end {
		upstream.progress = backfillProgress{}
	}
	if err == nil {
		return n, nil
	}
	if failure := u.failed(); failure != nil {
		return n, failure
	}
	upstream.failed(err)
	return n, err
}

// next is like Next, but it may return neither events nor an error.
func (u *upstreamWatcher) next(ctx context.Context, dst []listwatch.Event) (n int, err error) {
	switch {
	case len(u.pending) > 0:
		n = copy(dst, u.pending)
		if u.pending = u.pending[n:]; len(u.pending) == 0 {
			u.pending = nil // release the events
		}
		return n, nil
	case u.first != nil:
		select {
		case r := <-u.first:
			u.pending, u.first = r.events, nil
			return 0, r.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	case u.poller != nil:
		return u.nextFromPoller(ctx, dst)
	}
	return u.Watcher.Next(ctx, dst)
}

// nextFromPoller implements Next if the wrapped Watcher is a Poller. It returns a bookmark when the
// Poller advances without an event.
func (u *upstreamWatcher) nextFromPoller(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		if n, err := u.poller.Poll(dst); n > 0 || err != nil {
			return n, err
		}
		if at := u.poller.Progress().State; at.Version > u.position {
			u.position = at.Version
			dst[0] = listwatch.NewBookmark(listwatch.Describe(u.upstream.Source), at)
			return 1, nil
		}
		u.poller.Wake(u.onWake)
		select {
		case <-u.signal:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (u *upstreamWatcher) wake() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

// fail ends the watch with err. Only the first call has an effect.
func (u *upstreamWatcher) fail(err error) {
	u.mu.Lock()
	if u.failure == nil {
		u.failure = err
	}
	u.mu.Unlock()
	_ = u.Watcher.Close() // Next returns err, so the error of Close is not needed
	u.wake()
}

func (u *upstreamWatcher) failed() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.failure
}

func (u *upstreamWatcher) Close() error {
	u.upstream.closed(u)
	return u.Watcher.Close()
}

// A firstRead is the result of the first read of a watcher.
type firstRead struct {
	events []listwatch.Event
	err    error
}
