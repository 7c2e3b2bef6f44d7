package informer

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/listwatch/listwatch"
)

// Known is what has been popped from a [DeltaFIFO] and handled: the local store. An [Indexer] is one. It must not call the DeltaFIFO.
type Lookup[T any] interface {
	// Item returns what is known of a key.
	Item(key listwatch.Key) (*Item[T], bool)
	// Items returns all that is known, as it is at one moment.
	Items() iter.Seq[*Item[T]]
}

// A DeltaFIFO holds the changes that were not handled yet, one entry for each key, in the order in which the keys first came. What happens to
// a key that waits is folded into its entry, so memory is bounded by the number of keys, however slow the consumer is.
//
// The zero value is ready; set Known before the first use. All methods are safe for concurrent use. The changes of one source must be told in
// its order; how many goroutines tell them does not matter.
type DeltaFIFO[T any] struct {
	// Known is the store to which the consumer applies what it pops. Changes are told relative to it and to what waits: an Update of an
	// unknown object is an addition, a Delete of one is nothing. Nil: nothing can be looked up, so that changes are told as they come,
	// and a Replace deletes only what waits.
	KnownObjects Lookup[T]

	mu sync.Mutex
	// Guarded by mu.
	queue    entryQueue[T]
	handling *entry[T] // what a consumer is handling; it counts as known
	busy     bool      // there is a consumer at work
	closed   bool
	ready    chan struct{} // holds a token when a waiting consumer should look; nil: not made yet
	replaces uint32        // counts Replaces
	initial  initialList
	versions queueVersions
}

// A batch is the progress of the first Replace. One that comes before the first is handled belongs to it, else the end would show a state of
// which half is missing.
type initialList struct {
	remaining int // keys not handled yet
	done      bool
	doneChan  chan struct{} // closed when over; nil: nobody has asked
}

// claims is what is known of versions.
type queueVersions struct {
	// told is the newest version that any call has told.
	received listwatch.Version
	// floor is the newest version up to which everything was told, as lists and bookmarks say: what isn't newer is a repetition.
	complete listwatch.Version
	// handled is what Version has claimed last.
	handled listwatch.Version
}

var _ Sink[int] = (*DeltaFIFO[int])(nil)

// errClosed is what writers get after Close.
func errClosed() error {
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "informer queue", Message: "it was closed"}
}

// Add tells that an object appeared, or is there. An item that is not newer than what is known or waits for its key is dropped: a
// resumed stream may repeat. (Version zero is none, and never dropped.) The only error is that the queue was closed; so it is with the other
// methods that return one, but for Apply.
func (f *DeltaFIFO[T]) Add(item *Item[T]) error {
	return f.Apply(Delta[T]{Type: DeltaAdded, Item: item})
}

// Update tells that an object changed.
func (f *DeltaFIFO[T]) Update(item *Item[T]) error {
	return f.Apply(Delta[T]{Type: DeltaUpdated, Item: item})
}

// Delete tells that an object is gone; item is its last state, at the version of the deletion.
func (f *DeltaFIFO[T]) Delete(item *Item[T]) error {
	return f.Apply(Delta[T]{Type: DeltaDeleted, Item: item})
}

// Apply tells several changes in one step. A delta that is no addition, update or deletion, or has no item, is an error of code
// [listwatch.Invalid], and none is applied.
func (f *DeltaFIFO[T]) Apply(deltas ...Delta[T]) error {
	for _, d := range deltas {
		if d.Item == nil || d.Type != DeltaAdded && d.Type != DeltaUpdated && d.Type != DeltaDeleted {
			return &listwatch.Error{Code: listwatch.Invalid, Op: "informer queue", Message: fmt.Sprintf(
				"can't apply a delta of type %s (item: %t): want Added, Updated or Deleted, with an item", d.Type, d.Item != nil)}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosed()
	}
	for _, d := range deltas {
		f.apply(d)
	}
	f.wake()
	return nil
}

// Bookmark tells that everything up to version has been told.
func (f *DeltaFIFO[T]) Bookmark(version listwatch.Version) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosed()
	}
	f.versions.complete = max(f.versions.complete, version)
	f.versions.received = max(f.versions.received, version)
	return nil
}

// Sync tells known objects again, those of keys for which nothing waits.
func (f *DeltaFIFO[T]) Sync(keys ...listwatch.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range keys {
		f.sync(key)
	}
	f.wake()
}

// Resync is Sync of all known objects.
func (f *DeltaFIFO[T]) Resync() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.KnownObjects == nil {
		return
	}
	for i := range f.KnownObjects.Items() {
		f.sync(i.Key)
	}
	f.wake()
}

// Pop waits for the next key, calls handle with what happened to it, and returns what handle returns. isInitial says that the key belongs to
// the first list. handle runs outside all locks and may use the queue, but for Pop; one handle runs at a time, and other calls of Pop wait.
// What was popped stays popped, also where handle fails. Pop returns ctx.Err() where ctx ends first, and [io.EOF] when the queue was closed
// and is empty.
func (f *DeltaFIFO[T]) Pop(ctx context.Context, handle func(deltas Deltas[T], isInitial bool) error) error {
	deltas, err := f.next(ctx)
	if err != nil {
		return err
	}
	defer f.finish()
	return handle(deltas, deltas.d[0].Initial)
}

// next waits until the head could be made the current entry.
func (f *DeltaFIFO[T]) next(ctx context.Context) (Deltas[T], error) {
	if err := ctx.Err(); err != nil {
		return Deltas[T]{}, err
	}
	for {
		d, ready, err := f.take()
		if err != nil || ready == nil {
			return d, err
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return d, ctx.Err()
		}
	}
}

// take makes the head the current entry; where that can't be done now it returns what to wait for.
func (f *DeltaFIFO[T]) take() (d Deltas[T], ready <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.busy && f.queue.head != nil:
		f.busy = true
		f.handling = f.queue.pop()
		return f.handling.deltas(), nil, nil
	case !f.busy && f.closed:
		f.wake() // the next consumer
		return d, nil, io.EOF
	}
	if f.ready == nil {
		f.ready = make(chan struct{}, 1)
	}
	return d, f.ready, nil
}

// finish ends the handling of the current entry, also where it panicked.
func (f *DeltaFIFO[T]) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.handling
	f.handling, f.busy = nil, false
	f.countDone(e)
	f.queue.release(e)
	f.wake()
}

// wake lets a waiting consumer look, if there is something to see. mu is held.
func (f *DeltaFIFO[T]) wake() {
	if f.ready == nil || f.queue.head == nil && !f.closed {
		return
	}
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// Close ends the queue: nothing can be told any more, and Pop returns [io.EOF] when it has handed out the rest.
func (f *DeltaFIFO[T]) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.wake()
}

// Len returns for how many keys something waits.
func (f *DeltaFIFO[T]) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queue.len()
}

// HasSynced reports whether everything that the first Replace told was popped and handled, be it nothing.
func (f *DeltaFIFO[T]) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.initial.done
}

// Synced returns a channel that is closed when HasSynced becomes true.
func (f *DeltaFIFO[T]) Synced() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.initial.doneChan == nil {
		f.initial.doneChan = make(chan struct{})
		if f.initial.done {
			close(f.initial.doneChan)
		}
	}
	return f.initial.doneChan
}

// Version returns the one up to which everything was popped and handled. It never goes back but for a Replace at a lower version than was told
// before: then versions may have begun anew, and nothing is claimed until all of it is handled.
func (f *DeltaFIFO[T]) Version() listwatch.Version {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.handledVersion()
}

func (f *DeltaFIFO[T]) handledVersion() listwatch.Version {
	e := f.handling
	if e == nil {
		e = f.queue.head
	}
	switch {
	case e == nil:
		f.versions.handled = max(f.versions.handled, f.versions.received)
	case e.oldest > 0:
		f.versions.handled = max(f.versions.handled, e.oldest-1)
	}
	return f.versions.handled
}
