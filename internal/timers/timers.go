// Package timers calls functions at given times. Unlike package time it needs one timer of the
// runtime for any number of entries, and an entry is a small struct within its owner. A server with
// a million idle streams has a million entries, so their size counts, and not their precision under
// load.
//
// A Queue must not be shared between synctest bubbles, so each server has its own.
package timers

import (
	"container/heap"
	"sync"
	"time"
)

// A Queue holds the entries that are set. The zero value is ready to use. It is safe for concurrent
// use, and must not be copied.
type Queue struct {
	mu sync.Mutex
	// Guarded by mu.
	set     byTime
	start   time.Time   // the times of entries are relative to it; zero before the first Set
	runtime *time.Timer // calls fire; nil before the first Set
	armed   bool        // runtime is set
	fireAt  time.Duration
}

// An Entry calls a function once each time it is set. An Entry must not be copied, and must always
// be used with the same Queue.
type Entry struct {
	// Call is the function. It must return quickly and must not block, because it delays others.
	// Set it before the first use of the Entry.
	Call func()

	// Guarded by Queue.mu.
	at   time.Duration
	slot int // the index in Queue.set plus one; zero if the Entry is not set
}

// Set makes e call its function at the given time, on any goroutine, and replaces an earlier time
// that has not been reached.
func (q *Queue) Set(e *Entry, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.start.IsZero() {
		q.start = time.Now()
	}
	e.at = at.Sub(q.start)
	if e.slot == 0 {
		heap.Push(&q.set, e)
	} else {
		heap.Fix(&q.set, e.slot-1)
	}
	q.arm()
}

// Stop makes e not call its function, unless it is doing so already.
func (q *Queue) Stop(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.slot == 0 {
		return
	}
	heap.Remove(&q.set, e.slot-1)
	if len(q.set) == 0 {
		q.runtime.Stop()
		q.armed = false
	}
}

// arm sets the timer of the runtime to the first entry. It leaves a timer that is set earlier,
// because firing once too often costs less than setting it for each entry.
func (q *Queue) arm() {
	if len(q.set) == 0 || q.armed && q.fireAt <= q.set[0].at {
		return
	}
	q.armed, q.fireAt = true, q.set[0].at
	wait := q.fireAt - time.Since(q.start)
	if q.runtime == nil {
		q.runtime = time.AfterFunc(wait, q.fire)
	} else {
		q.runtime.Reset(wait)
	}
}

// fire calls the functions that are due, without holding mu.
func (q *Queue) fire() {
	q.mu.Lock()
	q.armed = false
	var due []func()
	for now := time.Since(q.start); len(q.set) > 0 && q.set[0].at <= now; {
		due = append(due, heap.Pop(&q.set).(*Entry).Call)
	}
	q.arm()
	q.mu.Unlock()
	for _, call := range due {
		call()
	}
}

// byTime is a heap of entries.
type byTime []*Entry

func (b byTime) Len() int           { return len(b) }
func (b byTime) Less(i, j int) bool { return b[i].at < b[j].at }

func (b byTime) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].slot, b[j].slot = i+1, j+1
}

// Push implements heap.Interface.
func (b *byTime) Push(x any) {
	e := x.(*Entry)
	*b = append(*b, e)
	e.slot = len(*b)
}

// Pop implements heap.Interface.
func (b *byTime) Pop() any {
	last := len(*b) - 1
	e := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	e.slot = 0
	return e
}
