package informer

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

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
