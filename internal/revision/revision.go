// Package revision has the newest version of a database, and waits for versions.
package revision

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
)

// A Revision is the newest version of a database. The logs of all its collections share it.
// The zero Revision is at version 0. It is safe for concurrent use.
type Revision struct {
	version atomic.Uint64
	// waiterCount is len(waiters). If it is zero, Advance takes no lock.
	waiterCount atomic.Int32

	mu      sync.Mutex
	waiters []*revisionWaiter // guarded by mu
}

type revisionWaiter struct {
	version listwatch.Version
	reached func()
}

// Version returns the newest version. Every write up to this version is in the log of its
// collection.
func (r *Revision) Version() listwatch.Version { return listwatch.Version(r.version.Load()) }

// Advance advances the revision to v, unless it has already reached v. Every write up to v
// must have been appended before.
func (r *Revision) Advance(v listwatch.Version) {
	for {
		old := r.version.Load()
		if old >= uint64(v) {
			return
		}
		if r.version.CompareAndSwap(old, uint64(v)) {
			break
		}
	}
	if r.waiterCount.Load() == 0 {
		return
	}
	for _, w := range r.removeWaiters(func(w *revisionWaiter) bool { return w.version <= v }) {
		w.reached()
	}
}

// OnReached calls f once when the revision reaches v, on the goroutine that advances it, so f must
// be quick. If the revision has already reached v, OnReached calls f immediately. The returned
// function cancels the call.
func (r *Revision) OnReached(v listwatch.Version, f func()) (cancel func()) {
	w := &revisionWaiter{v, f}
	remove := func() bool {
		return len(r.removeWaiters(func(other *revisionWaiter) bool { return other == w })) > 0
	}
	r.mu.Lock()
	r.waiters = append(r.waiters, w)
	r.waiterCount.Store(int32(len(r.waiters)))
	r.mu.Unlock()
	// A concurrent Advance may have missed the new waiterCount. Then it stored its version before
	// the following load of the version, so the load returns that version.
	if r.Version() >= v {
		if remove() {
			f()
		}
		return func() {}
	}
	return func() { remove() }
}

// Waiters returns the number of functions that OnReached has not called yet.
func (r *Revision) Waiters() int { return int(r.waiterCount.Load()) }

// removeWaiters removes and returns the waiters that match.
func (r *Revision) removeWaiters(match func(*revisionWaiter) bool) (removed []*revisionWaiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters = slices.DeleteFunc(r.waiters, func(w *revisionWaiter) bool {
		if !match(w) {
			return false
		}
		removed = append(removed, w)
		return true
	})
	r.waiterCount.Store(int32(len(r.waiters)))
	return removed
}

// Wait returns nil when the revision has reached v. Like kube-apiserver, it waits for at
// most 3 seconds and then returns an error of code [listwatch.NotYet]. If ctx ends first,
// it returns the error of ctx.
func (r *Revision) Wait(ctx context.Context, v listwatch.Version) error {
	if r.Version() >= v {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, errTimeout)
	defer cancel()
	reached := make(chan struct{})
	defer r.OnReached(v, func() { close(reached) })()
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		if context.Cause(ctx) == errTimeout {
			return TooLarge(v, r.Version())
		}
		return ctx.Err()
	}
}

// Timeout is the time that a list or a watch waits for a future version, as in
// kube-apiserver.
const Timeout = 3 * time.Second

var errTimeout = fmt.Errorf("not reached within %v", Timeout)

// TooLarge returns the error of a request for the version want, with Kubernetes' text.
func TooLarge(want, current listwatch.Version) error {
	return &listwatch.Error{
		Code:    listwatch.NotYet,
		Message: fmt.Sprintf("Too large resource version: %d, current: %d", want, current),
		Details: &listwatch.Details{
			Causes:     []listwatch.Cause{{Reason: listwatch.CauseTooLarge, Message: "Too large resource version"}},
			RetryAfter: time.Second,
		},
	}
}
