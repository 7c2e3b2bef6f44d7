package informer

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/listwatch/listwatch"
)

// Lookup is a read-only view of the objects that the consumer of a [DeltaFIFO] has handled,
// usually its local store. An [Indexer] implements it. Its methods must not call the
// DeltaFIFO.
type Lookup[T any] interface {
	// Item returns the object of a key and whether it exists.
	Item(key listwatch.Key) (*Item[T], bool)
	// Items returns a consistent snapshot of all objects.
	Items() iter.Seq[*Item[T]]
}

// A DeltaFIFO holds the changes that were not handled yet, one entry per key, in the order
// in which the keys were first queued. Further changes of a queued key are coalesced into
// its entry, so the memory is bounded by the number of keys, however slow the consumer is.
//
// The zero value is ready to use; set KnownObjects before the first use. All methods are
// safe for concurrent use. Changes of one source must be passed in the order of the source;
// they may come from several goroutines.
type DeltaFIFO[T any] struct {
	// KnownObjects is the store to which the consumer applies the deltas that it pops. The queue
	// computes new deltas from the state in this store and from the queued changes: an Update of an
	// unknown object becomes an addition, and a Delete of an unknown object is dropped. If nil,
	// deltas keep their types, and a Replace deletes only objects that are queued.
	KnownObjects Lookup[T]

	mu sync.Mutex
	// Guarded by mu.
	queue entryQueue[T]
	// handling is the entry that the consumer is handling. For new deltas, its state counts as the
	// state that the consumer knows.
	handling *entry[T]
	// busy is true while a consumer handles an entry.
	busy   bool
	closed bool
	// ready holds a token when a blocked consumer should try again. It is nil until a consumer
	// blocks.
	ready chan struct{}
	// replaces is the number of calls of Replace.
	replaces uint32
	initial  initialList
	versions queueVersions
}

// initialList tracks the progress of the first Replace. If a second Replace arrives before the
// first one is handled, the objects of the second one belong to the initial list as well. Otherwise
// the queue would report a sync although objects of the current state are missing.
type initialList struct {
	// remaining is the number of keys of the initial list that were not handled yet.
	remaining int
	done      bool
}

// queueVersions holds the versions that the queue keeps track of.
type queueVersions struct {
	// received is the newest version that was passed to the last Replace or, since then, to
	// another method.
	received listwatch.Version
	// complete is the newest version up to which everything was received, according to
	// lists and bookmarks. A change that is not newer is a duplicate.
	complete listwatch.Version
	// handled is the result of the last call of handledVersion.
	handled listwatch.Version
	// restarts is the number of Replaces at a version lower than a version received before.
	restarts uint32
}

var _ Patcher[int] = (*DeltaFIFO[int])(nil)

// errClosed is the error of writes after Close.
func errClosed() error {
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "informer queue", Message: "the queue is closed"}
}

// Add queues an item, whether or not the consumer knows an object of its key. An item that is not
// newer than the known or queued state of its key is dropped, because a resumed stream may repeat
// events; an item of version zero is never dropped. Add, Update and Delete fail only if the queue
// is closed or item is nil.
func (d *DeltaFIFO[T]) Add(item *Item[T]) error {
	return d.Apply(Delta[T]{Type: DeltaAdded, Item: item})
}

// Update queues a changed item.
func (d *DeltaFIFO[T]) Update(item *Item[T]) error {
	return d.Apply(Delta[T]{Type: DeltaUpdated, Item: item})
}

// Delete queues a deletion. item is the last state of the object, at the version of the deletion.
func (d *DeltaFIFO[T]) Delete(item *Item[T]) error {
	return d.Apply(Delta[T]{Type: DeltaDeleted, Item: item})
}

// Apply queues several changes in one step. If a delta has no item, or a type other than
// DeltaAdded, DeltaUpdated and DeltaDeleted, Apply returns an error of code
// [listwatch.Invalid] and applies none of the changes.
func (d *DeltaFIFO[T]) Apply(deltas ...Delta[T]) error {
	for _, change := range deltas {
		isChange := change.Type == DeltaAdded || change.Type == DeltaUpdated || change.Type == DeltaDeleted
		if change.Item == nil || !isChange {
			return &listwatch.Error{Code: listwatch.Invalid, Op: "informer queue", Message: fmt.Sprintf(
				"delta of type %s (has an item: %t): must be Added, Updated or Deleted and have an item",
				change.Type, change.Item != nil)}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed()
	}
	for _, change := range deltas {
		d.apply(change)
	}
	d.wake()
	return nil
}

// Bookmark reports that everything up to the given version was passed to the queue.
func (d *DeltaFIFO[T]) Bookmark(version listwatch.Version) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed()
	}
	d.versions.complete = max(d.versions.complete, version)
	d.versions.received = max(d.versions.received, version)
	return nil
}

// Sync queues a DeltaSync for each of the keys that is known and not queued already.
func (d *DeltaFIFO[T]) Sync(keys ...listwatch.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		d.sync(key)
	}
	d.wake()
}

// Resync queues a DeltaSync for every known key that is not queued.
func (d *DeltaFIFO[T]) Resync() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.KnownObjects == nil {
		return
	}
	for i := range d.KnownObjects.Items() {
		d.sync(i.Key)
	}
	d.wake()
}

// Pop waits for the next key, calls handle with its deltas, and returns the error of
// handle. isInitial reports whether the key belongs to the first list. handle runs without
// any lock and may call every method but Pop. Only one handle runs at a time; other calls
// of Pop wait for it. The key is removed from the queue even if handle fails. Pop returns
// ctx.Err() if ctx ends first, and [io.EOF] if the queue is closed and empty.
func (d *DeltaFIFO[T]) Pop(ctx context.Context, handle func(deltas Deltas[T], isInitial bool) error) error {
	deltas, err := d.next(ctx)
	if err != nil {
		return err
	}
	defer d.finish()
	return handle(deltas, deltas.d[0].Initial)
}

// next waits until it can take the head of the queue.
func (d *DeltaFIFO[T]) next(ctx context.Context) (Deltas[T], error) {
	if err := ctx.Err(); err != nil {
		return Deltas[T]{}, err
	}
	for {
		deltas, ready, err := d.take()
		if err != nil || ready == nil {
			return deltas, err
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return deltas, ctx.Err()
		}
	}
}

// take makes the head of the queue the entry being handled. If that is not possible now, it
// returns a channel to wait on.
func (d *DeltaFIFO[T]) take() (deltas Deltas[T], ready <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !d.busy && d.queue.head != nil:
		d.busy = true
		d.handling = d.queue.pop()
		return d.handling.deltas(), nil, nil
	case !d.busy && d.closed:
		d.wake() // another consumer may be blocked as well
		return deltas, nil, io.EOF
	}
	if d.ready == nil {
		d.ready = make(chan struct{}, 1)
	}
	return deltas, d.ready, nil
}

// finish completes the entry being handled. It also runs after a panic of the consumer.
func (d *DeltaFIFO[T]) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.handling
	d.handling, d.busy = nil, false
	d.countDone(e)
	d.queue.release(e)
	d.wake()
}

// wake wakes a blocked consumer if there is an entry to take or the queue is closed. The
// caller must hold d.mu.
func (d *DeltaFIFO[T]) wake() {
	if d.ready != nil && (d.queue.head != nil || d.closed) {
		signal(d.ready)
	}
}

// Close closes the queue. Further writes fail, and Pop returns [io.EOF] after the remaining
// entries were handled.
func (d *DeltaFIFO[T]) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.wake()
}

// Len returns the number of queued keys.
func (d *DeltaFIFO[T]) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queue.len()
}

// HasSynced reports whether every object of the first Replace was popped and handled. It is
// also true if the first list was empty.
func (d *DeltaFIFO[T]) HasSynced() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.initial.done
}

// Version returns the version up to which everything was popped and handled. It never decreases,
// except after a Replace at a version lower than a version received before: then the versions may
// have started over (a new epoch), and Version is zero until all of the new state is handled.
func (d *DeltaFIFO[T]) Version() listwatch.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handledVersion()
}

// handledVersion computes Version. The caller must hold d.mu.
func (d *DeltaFIFO[T]) handledVersion() listwatch.Version {
	e := d.handling
	if e == nil {
		e = d.queue.head
	}
	switch {
	case e == nil:
		d.versions.handled = max(d.versions.handled, d.versions.received)
	case e.oldest > 0:
		d.versions.handled = max(d.versions.handled, e.oldest-1)
	}
	return d.versions.handled
}

// received returns the newest version that the queue has received, and the number of states and
// differences so far.
func (d *DeltaFIFO[T]) received() (v listwatch.Version, replaces uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.versions.received, d.replaces
}

// advance records that the queue has received every event up to v. Every entry that is still queued
// must be newer. advance has no effect if the queue has received another state or difference since
// received returned replaces.
//
// Later events are not compared with v, because several events of one transaction by another
// program may have the same version.
func (d *DeltaFIFO[T]) advance(v listwatch.Version, replaces uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.replaces == replaces {
		d.versions.handled = max(d.handledVersion(), v)
	}
}

// settle calls hasState if the queue is empty. hasState reports whether the consumer has the state
// of the source at v. If so, all later events up to v are dropped as duplicates. hasState must not
// call the queue. settle has no effect if the queue has received another state or difference since
// received returned replaces.
func (d *DeltaFIFO[T]) settle(v listwatch.Version, replaces uint32, hasState func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.replaces == replaces && d.isIdle() && hasState() {
		d.versions.complete, d.versions.received = max(d.versions.complete, v), max(d.versions.received, v)
	}
}

// progress returns the result of Version, the number of times that the versions may have started
// over, and whether every entry was popped and handled.
func (d *DeltaFIFO[T]) progress() (v listwatch.Version, restarts uint32, idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handledVersion(), d.versions.restarts, d.isIdle()
}

// isIdle reports whether every entry was popped and handled. The caller must hold d.mu.
func (d *DeltaFIFO[T]) isIdle() bool { return d.queue.head == nil && d.handling == nil }
