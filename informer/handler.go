package informer

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A ChangeType says what became of an object, for one handler.
type ChangeType uint8

// The types of a [Change].
const (
	// Appeared: the handler did not know the object.
	ChangeAdded ChangeType = iota + 1
	// Changed: the handler knew another state of it, or the same one, at a resync.
	ChangeUpdated
	// Disappeared: the object was deleted, or left the selection.
	ChangeDeleted
)

var changeNames = [...]string{ChangeAdded: "appeared", ChangeUpdated: "changed", ChangeDeleted: "disappeared"}

// String returns a word.
func (t ChangeType) String() string {
	if int(t) < len(changeNames) && changeNames[t] != "" {
		return changeNames[t]
	}
	return "unknown"
}

// A Change is what happened to one object between two looks of a handler: the state it saw last, and the one that is now.
type Change[T any] struct {
	// Type is what happened, to which object, and the version at which it did.
	Type    ChangeType
	Key     listwatch.Key
	Version listwatch.Version
	// Old is the state that the handler saw last, New the one that is now. Old is the zero T where the object appeared; New, where it
	// disappeared, is its last state.
	Old, New T
	// Initial is true for an object of the state that the handler began with.
	Initial bool
	// Resync is true where nothing happened, and the handler asked to be called from time to time.
	Resync bool
	// FinalStateUnknown is true where the object disappeared while the informer was cut off from the history: New is the last state that
	// was seen, not that of the deletion, and Version is the version of that state.
	FinalStateUnknown bool
}

// A Deleted is the last that is known of an object that is gone. It is the same type whether the deletion was seen or inferred.
type Deleted[T any] struct {
	// Key names the object, Version is that of the deletion.
	Key     listwatch.Key
	Version listwatch.Version
	// Value is its last state.
	Value T
	// FinalStateUnknown is as in [Change].
	FinalStateUnknown bool
}

// A Handler is called for each change. Each function may be nil. One goroutine calls them, one call at a time; values are shared with the
// local store and must not be modified. They may use the informer as they like, but that they must not wait for their own sync. A panic of
// theirs ends the program, for what it left undone is told by nobody again.
type Handler[T any] struct {
	// OnAdd is called for an object that the handler did not know; initial: it is of the state that the handler began with.
	OnAdd func(value T, initial bool)
	// OnUpdate is called with the state that the handler saw last and the one that is now; at a resync they are the same.
	OnUpdate func(old, value T)
	// OnDelete is called for an object that is gone.
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

// HandlerOptions say how a handler is fed. nil: the zero value.
type HandlerOptions struct {
	// Block is how many changes may wait for the handler before the informer waits for it, and every other handler with it; then nothing is
	// left out, in as far as the informer itself kept up. Such a handler must not wait for a version: nothing would reach the store.
	//
	// Zero, the default: the informer never waits. Changes of one object that wait are joined to one, so that a slow handler sees fewer
	// changes and the newest state, and what it costs is bounded by the number of objects. Negative: as zero.
	MaxPending int
	// Resync is how often the handler is shown every object of the local store, so that it may mend what it did wrong. It asks the source
	// for nothing. Zero: the informer's Resync; negative: never.
	Resync time.Duration
}

// A Registration is a handler's place at an informer. It is safe for concurrent use.
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

// Remove ends the registration: no call begins after it returns, one that is under way ends by itself. Calling it again does nothing.
func (r *Registration[T]) Remove() {
	r.removeOnce.Do(func() {
		i := r.informer
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.registrations, r)
		if r.timer != nil {
			r.timer.Stop()
		}
		close(r.removed)
	})
}

// HasSynced reports whether the handler has been called for, and has returned from, every object of the state that it began with.
func (r *Registration[T]) HasSynced() bool {
	select {
	case <-r.synced:
		return true
	default:
		return false
	}
}

// WaitForSync waits until HasSynced. It returns ctx.Err() where ctx ends first, an error of code Unavailable where the registration was
// removed or the informer's Run has ended, and one of code Invalid where the informer has no Source.
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

// Pending returns how many calls wait for the handler.
func (r *Registration[T]) Pending() int { return r.queue.len() }

// Handle registers h, which may happen before Run and while it runs. A handler is first called with what is in the local store, each object
// once, then with what changes. It is called from a goroutine of its own, which ends with Run or with the removal of the registration.
func (i *Informer[T]) Handle(h Handler[T], o *HandlerOptions) *Registration[T] {
	r := i.register(o)
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.isDone() {
		i.handlers.Go(func() {
			for c := range r.changes(context.Background()) {
				h.call(c)
			}
		})
	}
	return r
}

// Changes is [Informer.Handle] as an iterator: it yields what is in the local store, then what changes, until ctx or the informer's Run ends.
// Before Run it waits for it. What is not taken waits as o says.
func (i *Informer[T]) Changes(ctx context.Context, o *HandlerOptions) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		r := i.register(o)
		defer r.Remove()
		r.changes(ctx)(yield)
	}
}

// changes yields what comes for r, until ctx, the registration or Run ends.
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
				case <-r.informer.done:
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

// isOver reports whether no call may begin any more, for one who goes on until ctx ends.
func (r *Registration[T]) isDone(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-r.removed:
		return true
	case <-r.informer.done:
		return true
	default:
		return false
	}
}

// register makes a registration that begins with what is in the store.
func (i *Informer[T]) register(o *HandlerOptions) *Registration[T] {
	if o == nil {
		o = &HandlerOptions{}
	}
	r := &Registration[T]{
		informer: i, queue: newHandlerQueue[T](max(o.MaxPending, 0)), resync: o.Resync, removed: make(chan struct{}), synced: make(chan struct{}),
	}
	if r.resync == 0 {
		r.resync = i.Resync
	}
	i.init()
	i.mu.Lock()
	defer i.mu.Unlock()
	for item := range i.store.Snapshot().Items() {
		r.queue.push(notification[T]{key: item.Key, now: item, initial: true})
	}
	if i.isSynced {
		r.markSynced()
	}
	i.registrations[r] = struct{}{}
	if r.resync > 0 && !i.isDone() {
		r.timer = time.AfterFunc(r.resync, r.resyncNow)
	}
	return r
}

// markSynced makes r synced once everything that waits for it has been handled.
func (r *Registration[T]) markSynced() {
	r.queue.pushMarker(func() { r.syncOnce.Do(func() { close(r.synced) }) })
}

// resyncNow shows the handler everything, and arms the next time.
func (r *Registration[T]) resyncNow() {
	i := r.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.isDone(context.Background()) {
		return
	}
	r.queue.resync(i.store.Snapshot())
	r.timer.Reset(r.resync)
}
