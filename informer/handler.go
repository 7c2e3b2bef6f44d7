package informer

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A Deleted describes a deleted object. It is the same type whether the deletion was
// received or inferred from a list.
type Deleted[T any] struct {
	// Key is the key of the object. Version is the version of the deletion or, if that is unknown,
	// the version of Value.
	Key     listwatch.Key
	Version listwatch.Version
	// Value is the last known state of the object.
	Value T
	// FinalStateUnknown has the same meaning as in [Change].
	FinalStateUnknown bool
}

// A Handler is called for each change. Each function may be nil. One goroutine makes all calls of a
// handler, one at a time. The values are shared with the local store and must not be modified. A
// handler may call any method of its informer, except that it must not wait for its own sync. The
// informer does not recover from a panic of a handler, because the informer could not repeat the
// unfinished work of that call.
type Handler[T any] struct {
	// OnAdd is called for an object that is new to the handler. initial is true if the
	// object belongs to the state that the handler started with.
	OnAdd func(value T, initial bool)
	// OnUpdate is called with the state that the handler saw last and the current state. At a
	// resync both are the same.
	OnUpdate func(old, value T)
	// OnDelete is called for an object that was deleted or no longer matches the query.
	OnDelete func(d Deleted[T])
}

func (h *Handler[T]) call(c Change[T]) {
	switch {
	case c.Type == ChangeAdded && h.OnAdd != nil:
		h.OnAdd(c.New, c.Initial)
	case c.Type == ChangeUpdated && h.OnUpdate != nil:
		h.OnUpdate(c.Old, c.New)
	case c.Type == ChangeDeleted && h.OnDelete != nil:
		h.OnDelete(Deleted[T]{Key: c.Key, Version: c.Version, Value: c.New, FinalStateUnknown: c.FinalStateUnknown})
	}
}

// HandlerOptions configures how a handler is called. A nil *HandlerOptions means the zero
// value.
type HandlerOptions struct {
	// MaxPending limits the pending changes of the handler. At this number the informer blocks, and
	// this delays every other handler, too. With this limit, the handler's queue never coalesces
	// changes, although the informer itself may coalesce changes that it received while it was
	// blocked. Such a handler must not wait for a version, because the store does not advance while
	// the informer is blocked.
	//
	// If zero or negative, the informer never blocks. Pending changes of one object are then
	// coalesced into one. So a slow handler sees fewer changes but always the newest state, and the
	// size of its queue is bounded by the number of objects.
	MaxPending int
	// Resync is the interval at which the handler is called with every object of the local
	// store, so that it can repair its own mistakes. A resync sends no request to the
	// source. If zero, the informer's Resync is used. A negative value disables resyncs.
	Resync time.Duration
}

// A Registration is a handler that is registered with an informer. It is safe for
// concurrent use.
type Registration[T any] struct {
	// Immutable after construction.
	informer *Informer[T]
	queue    *handlerQueue[T]
	resync   time.Duration
	removed  chan struct{}
	synced   chan struct{}

	removeOnce sync.Once
	syncOnce   sync.Once

	// Guarded by informer.mu.
	timer *time.Timer
}

// Remove unregisters the handler: no call starts after Remove returns, but a call that is
// in progress completes. Further calls of Remove have no effect.
func (r *Registration[T]) Remove() {
	r.removeOnce.Do(func() {
		i := r.informer
		i.state.mu.Lock()
		defer i.state.mu.Unlock()
		delete(i.state.registrations, r)
		if r.timer != nil {
			r.timer.Stop()
		}
		close(r.removed)
	})
}

// HasSynced reports whether the handler was called for every object of the state that it
// started with, and all these calls have returned.
func (r *Registration[T]) HasSynced() bool {
	return isClosed(r.synced)
}

// WaitForSync blocks until HasSynced returns true. It returns ctx.Err() if ctx ends first,
// an error of code Unavailable if the registration was removed or the informer's Run has
// returned, and an error of code Invalid if the informer has no Source.
func (r *Registration[T]) WaitForSync(ctx context.Context) error {
	const op = "wait for a handler's sync"
	if err := r.informer.await(ctx, op, r.synced, r.removed); err != nil {
		return err
	}
	if !r.HasSynced() {
		return &listwatch.Error{Code: listwatch.Unavailable, Op: op, Message: "the handler was removed"}
	}
	return nil
}

// Pending returns the number of calls that are pending for the handler.
func (r *Registration[T]) Pending() int { return r.queue.len() }

// changes yields the changes queued for r until ctx ends, r is removed, or Run ends.
func (r *Registration[T]) changes(ctx context.Context) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		next := func(c Change[T]) bool { return !r.isDone(ctx) && yield(c) }
		for {
			n := r.queue.pop()
			if n == nil {
				select {
				case <-r.queue.ready:
					continue
				case <-r.removed:
				case <-r.informer.state.done:
				case <-ctx.Done():
				}
				return
			}
			if n.marker != nil {
				n.marker()
				continue
			}
			if !n.changes(next) {
				return
			}
		}
	}
}

// isDone reports whether no further call may start, because ctx has ended, r was removed, or Run
// has ended.
func (r *Registration[T]) isDone(ctx context.Context) bool {
	return ctx.Err() != nil || isClosed(r.removed) || r.informer.isDone()
}

// markSynced makes r synced after all notifications that are pending now have been handled.
func (r *Registration[T]) markSynced() {
	r.queue.pushMarker(func() { r.syncOnce.Do(func() { close(r.synced) }) })
}

// resyncNow queues every object for the handler and schedules the next resync.
func (r *Registration[T]) resyncNow() {
	i := r.informer
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	if r.isDone(context.Background()) {
		return
	}
	r.queue.resync(i.Snapshot())
	r.timer.Reset(r.resync)
}
