package history

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
)

// A Head is the newest committed version of a database, shared by the logs of its collections. The zero Head is at version 0. It is
// safe for concurrent use.
type Revision struct {
	version atomic.Uint64
	waiting atomic.Int32 // length of waiters, so that Advance needs no lock where nobody waits

	mu      sync.Mutex
	waiters []*headWaiter // guarded by mu
}

type headWaiter struct {
	version listwatch.Version
	reached func()
}

// Version returns the newest version. All writes up to it have been appended to their logs.
func (h *Revision) Version() listwatch.Version { return listwatch.Version(h.version.Load()) }

// Advance moves the head to v, unless it is there or beyond. Every write up to v must have been appended.
func (h *Revision) Advance(v listwatch.Version) {
	for {
		old := h.version.Load()
		if old >= uint64(v) {
			return
		}
		if h.version.CompareAndSwap(old, uint64(v)) {
			break
		}
	}
	if h.waiting.Load() == 0 {
		return
	}
	var reached []func()
	h.mu.Lock()
	keep := h.waiters[:0]
	for _, w := range h.waiters {
		if w.version <= v {
			reached = append(reached, w.reached)
		} else {
			keep = append(keep, w)
		}
	}
	clear(h.waiters[len(keep):])
	h.waiters = keep
	h.waiting.Store(int32(len(keep)))
	h.mu.Unlock()
	for _, f := range reached {
		f()
	}
}

// reach calls f once when the head reaches v, from the goroutine that moves it, so f must be quick; at once where it is there. The
// function it returns takes that back.
func (h *Revision) reach(v listwatch.Version, f func()) (cancel func()) {
	w := &headWaiter{v, f}
	h.mu.Lock()
	h.waiters = append(h.waiters, w)
	h.waiting.Store(int32(len(h.waiters)))
	h.mu.Unlock()
	// Looked at after waiting was raised: an Advance that missed the waiter is seen here.
	if h.Version() >= v {
		if h.remove(w) {
			f()
		}
		return func() {}
	}
	return func() { h.remove(w) }
}

func (h *Revision) remove(w *headWaiter) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.waiters {
		if h.waiters[i] == w {
			h.waiters = append(h.waiters[:i], h.waiters[i+1:]...)
			h.waiting.Store(int32(len(h.waiters)))
			return true
		}
	}
	return false
}

// Wait returns when the head has reached v. After 3 seconds, as kube-apiserver waits, it is an error of code [listwatch.NotYet]; when ctx
// ends, that of ctx.
func (h *Revision) Wait(ctx context.Context, v listwatch.Version) error {
	if h.Version() >= v {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNotYet)
	defer cancel()
	reached := make(chan struct{})
	defer h.reach(v, func() { close(reached) })()
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		if context.Cause(ctx) == errNotYet {
			return tooLarge(v, h.Version())
		}
		return ctx.Err()
	}
}
