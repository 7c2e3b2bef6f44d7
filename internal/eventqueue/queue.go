// Package eventqueue has the queue between the goroutine that receives the events of a watch and
// the reader of the watch.
package eventqueue

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
)

// A Queue has one writer, which waits while the queue is full, so that a slow reader slows down the
// source of the events. It has one reader at a time, which calls Next, Poll, Wake and Progress.
type Queue struct {
	// Immutable after construction.

	bookmarks bool
	// ready and room have capacity 1. A token in ready makes Next look for events, and a token in
	// room makes WaitForRoom look for room.
	ready, room chan struct{}
	makeReady   func() // puts a token into ready; allocated once

	mu sync.Mutex
	// Guarded by mu.
	events []listwatch.Event
	bytes  int    // the size of the objects of events
	taken  bool   // the reader has received an event
	err    error  // returned after events; nil while the queue is open
	wake   func() // the function of Wake; nil if it was called

	position listwatch.Version // owned by the reader
}

// The limits of a Queue. A batch of events is added as a whole, so the last batch may exceed them.
const (
	MaxEvents = 256
	MaxBytes  = 1 << 20
)

// New returns an empty queue. If bookmarks is false, Push drops bookmarks and the ends of initial
// events.
func New(bookmarks bool) *Queue {
	q := &Queue{bookmarks: bookmarks, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	q.makeReady = func() { signal(q.ready) }
	return q
}

// Push appends events, even if the queue is full. It drops them if the queue has ended.
func (q *Queue) Push(events []listwatch.Event) {
	q.change(func() {
		for _, e := range events {
			if q.err == nil && (q.bookmarks || !isBookmark(e)) {
				q.events = append(q.events, e)
				q.bytes += size(e)
			}
		}
	})
}

// End makes the reader receive err after the events of the queue. It has no effect if the queue has
// ended.
func (q *Queue) End(err error) {
	q.change(func() {
		if q.err == nil {
			q.err = err
		}
	})
}

// Close drops the events of the queue, and makes the reader receive [io.EOF]. Any goroutine may
// call it.
func (q *Queue) Close() {
	q.change(func() { q.events, q.bytes, q.err = nil, 0, io.EOF })
	signal(q.room)
}

// change calls f with mu held, and then the function of Wake.
func (q *Queue) change(f func()) {
	q.mu.Lock()
	f()
	wake := q.wake
	q.wake = nil
	q.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// Reset drops the events of the queue. If the reader has received an event, it does nothing and
// returns false.
func (q *Queue) Reset() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken {
		return false
	}
	clear(q.events)
	q.events, q.bytes = q.events[:0], 0
	return true
}

// WaitForRoom waits until the queue is not full. It returns false if the queue has ended.
func (q *Queue) WaitForRoom() bool {
	for {
		q.mu.Lock()
		isFull, isOpen := q.isFull(), q.err == nil
		q.mu.Unlock()
		if !isFull || !isOpen {
			return isOpen
		}
		<-q.room
	}
}

// isFull reports whether the queue has reached a limit. The caller must hold mu.
func (q *Queue) isFull() bool { return len(q.events) >= MaxEvents || q.bytes >= MaxBytes }

// Next is like the Next of [listwatch.Watcher]. It returns events of the queue even if ctx has
// ended.
func (q *Queue) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		if n, err := q.Poll(dst); n > 0 || err != nil {
			return n, err
		}
		q.Wake(q.makeReady)
		select {
		case <-q.ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Poll is like the Poll of [listwatch.Poller].
func (q *Queue) Poll(dst []listwatch.Event) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		return 0, q.err
	}
	wasFull := q.isFull()
	n := copy(dst, q.events)
	for _, e := range dst[:n] {
		q.bytes -= size(e)
		switch {
		case isBookmark(e):
			q.position = e.Version
		case !e.Initial && e.Version > 0:
			// Another event of the same version may follow.
			q.position = max(q.position, e.Version-1)
		}
	}
	q.events = slices.Delete(q.events, 0, n)
	q.taken = q.taken || n > 0
	if wasFull && !q.isFull() {
		signal(q.room)
	}
	return n, nil
}

// Wake is like the Wake of [listwatch.Poller].
func (q *Queue) Wake(f func()) {
	q.mu.Lock()
	isReady := len(q.events) > 0 || q.err != nil
	if !isReady {
		q.wake = f
	}
	q.mu.Unlock()
	if isReady {
		f()
	}
}

// Progress is like the Progress of [listwatch.Poller]. Its Version is the version of the last
// bookmark, or the version just below the version of the last event. It may lag behind the source.
func (q *Queue) Progress() listwatch.Progress {
	return listwatch.Progress{State: listwatch.State{Version: q.position}}
}

func isBookmark(e listwatch.Event) bool {
	return e.Type == listwatch.Bookmark || e.Type == listwatch.Synced
}

func size(e listwatch.Event) int {
	if e.Object == nil { // a bookmark of a Watcher outside of this module
		return 0
	}
	return len(e.Object.Data)
}

// signal puts a token into a channel of capacity 1, unless it has one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
