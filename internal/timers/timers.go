// Package timers calls functions at given times. Unlike package time it needs one timer of the
// runtime for any number of entries, and an entry is a small struct within its owner. A server with
// a million idle streams has a million entries, so small entries are more important than precision
// under load.
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
	startOnce sync.Once
	start     time.Time // the moment that the Time zero stands for; see init

	mu sync.Mutex
	// Guarded by mu.
	set     byTime
	runtime *time.Timer // calls fire; nil before the first Set
	armed   bool        // runtime is set
	fireAt  Time
}

// A Time is a time in nanoseconds since a moment shortly before the first use of its Queue. Zero
// can mean never, because all times after the first use are positive. It takes a third of the
// memory of a [time.Time].
type Time int64

// The range of a Time leaves room to add any duration of up to 146 years.
const (
	minTime = -maxTime
	maxTime = 1 << 62
)

// init sets start.
func (q *Queue) init() {
	q.startOnce.Do(func() { q.start = time.Now().Add(-time.Second) })
}

// Now returns the current time.
func (q *Queue) Now() Time {
	q.init()
	return Time(time.Since(q.start))
}

// Time returns t as a Time of q. A time more than 146 years away is replaced by the nearest one in
// the range of a Time.
func (q *Queue) Time(t time.Time) Time {
	q.init()
	return Time(min(max(t.Sub(q.start), minTime), maxTime))
}

// StdTime returns t, a Time of q, as a time.Time.
func (q *Queue) StdTime(t Time) time.Time {
	q.init()
	return q.start.Add(time.Duration(t))
}

// Add returns t+d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// An Entry calls a function once each time it is set. An Entry must not be copied, and must always
// be used with the same Queue.
type Entry struct {
	// Call is the function. It must return quickly and must not block, because it delays the calls
	// of other entries. Set it before the first use of the Entry.
	Call func()

	at   Time // written by Set with Queue.mu held; At reads it without the mutex
	slot int  // guarded by Queue.mu: the index in Queue.set plus one; zero if the Entry is not set
}

// At returns the time that was passed to the last call of Set, or zero before the first call. It
// must not be called during Set.
func (e *Entry) At() Time { return e.at }

// Set makes e call its function at the given time, on any goroutine, and replaces an earlier time
// that has not been reached.
func (q *Queue) Set(e *Entry, at Time) {
	q.init()
	q.mu.Lock()
	defer q.mu.Unlock()
	e.at = at
	if e.slot == 0 {
		heap.Push(&q.set, e)
	} else {
		heap.Fix(&q.set, e.slot-1)
	}
	q.arm()
}

// Stop cancels the call of e. A call whose time has come may still happen.
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

// arm sets the timer of the runtime to the time of the first entry. It does not change a timer that
// is set to an earlier time, because firing once too often costs less than setting the timer for
// each entry.
func (q *Queue) arm() {
	if len(q.set) == 0 || q.armed && q.fireAt <= q.set[0].at {
		return
	}
	q.armed, q.fireAt = true, q.set[0].at
	wait := time.Duration(q.fireAt - q.Now())
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
	for now := q.Now(); len(q.set) > 0 && q.set[0].at <= now; {
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
