// Package expiry finds the objects of a store whose time to live (TTL) has ended.
//
// A TTL is a lower bound. An object lives for its TTL after the last write or renewal, plus the
// time in which its renewals could not arrive, plus up to one [Tick].
package expiry

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Tick is the interval at which a Queue looks for keys that are due.
const Tick = time.Second

const (
	// maxDue is the maximum number of keys in one call of expire.
	maxDue = 1000
	// maxTTL is about a century. A longer TTL is reduced to it, so that a deadline cannot overflow.
	maxTTL = 100 * 365 * 24 * time.Hour
)

// A Queue holds the deadlines of the keys of one collection, and calls a function with the keys
// that are due. It needs no goroutine, and no timer while it is empty. It is safe for concurrent
// use. Its owner deletes an object in three steps:
//
//  1. expire receives the key.
//  2. Claim reports whether the key is still due. After that, a renewal waits.
//  3. Set with a TTL of zero, once the object is deleted, or Release if the delete has failed.
type Queue[K comparable] struct {
	expire func(due []K)    // immutable
	now    func() time.Time // immutable; replaced by tests that simulate a pause
	size   atomic.Int64     // the number of entries

	mu sync.Mutex // acquired before the mutex of a log, never after it
	// Guarded by mu.
	entries map[K]*entry[K]
	checks  checkHeap[K]
	clock   time.Duration // see advance
	read    time.Time     // when the clock was advanced
	paused  bool          // see Pause
	armed   bool          // a timer is set, or its function is running
	stopped error         // not nil after Stop

	running sync.WaitGroup // the call of run
}

// An entry is a key with its deadline, by the clock of the Queue.
type entry[K comparable] struct {
	key      K
	ttl      time.Duration
	deadline time.Duration
	// check is the time at which the Queue looks at the entry. A renewal moves only the deadline.
	// So it takes constant time, and check is before the deadline until the Queue looks.
	check   time.Duration
	index   int           // in checks
	claimed chan struct{} // not nil after Claim; closed by Set and Release
}

// New returns an empty Queue. expire is called with at most 1,000 keys on a goroutine of its own,
// and never concurrently. A key that was not removed meanwhile is passed to expire again after one
// Tick. now is the clock. If nil, time.Now is used.
func New[K comparable](expire func(due []K), now func() time.Time) *Queue[K] {
	if now == nil {
		now = time.Now
	}
	return &Queue[K]{expire: expire, now: now, entries: make(map[K]*entry[K])}
}

// Len returns the number of keys.
func (q *Queue[K]) Len() int { return int(q.size.Load()) }

// Set starts the TTL of key, after a write. If ttl is zero or negative, it removes key. In an empty
// Queue that costs nothing, so a store can call Set after every write.
func (q *Queue[K]) Set(key K, ttl time.Duration) {
	if ttl > 0 || q.size.Load() > 0 {
		q.Restore(key, ttl, ttl)
	}
}

// Restore is like Set, for an object that has only a part of its TTL left.
func (q *Queue[K]) Restore(key K, ttl, left time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ttl, left = min(ttl, maxTTL), min(left, maxTTL)
	e := q.entries[key]
	q.release(e)
	switch {
	case ttl <= 0 && e != nil:
		heap.Remove(&q.checks, e.index)
		delete(q.entries, key)
	case ttl <= 0:
	case e == nil:
		e = &entry[K]{key: key, ttl: ttl, deadline: q.advance() + left}
		e.check = e.deadline
		q.entries[key] = e
		heap.Push(&q.checks, e)
	default:
		e.ttl, e.deadline = ttl, q.advance()+left
		if e.deadline < e.check {
			e.check = e.deadline
			heap.Fix(&q.checks, e.index)
		}
	}
	q.size.Store(int64(len(q.entries)))
	if !q.armed {
		q.arm()
	}
}

// Renew starts the TTL of key again if current returns nil. current reports whether key still has
// the object to be renewed. Renew calls it with the Queue locked, so that the renewal and a Claim
// have an order. A key that was not Set has no TTL, and Renew only returns the result of current.
// Renew waits for the end of a Claim, but not longer than ctx. After Stop, it returns the error of
// Stop.
func (q *Queue[K]) Renew(ctx context.Context, key K, current func() error) error {
	for {
		claimed, err := q.tryRenew(key, current)
		if claimed == nil {
			return err
		}
		select {
		case <-claimed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryRenew is like Renew, but it returns the channel of a Claim instead of waiting for it.
func (q *Queue[K]) tryRenew(key K, current func() error) (claimed <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped != nil {
		return nil, q.stopped
	}
	if err := current(); err != nil {
		return nil, err
	}
	e := q.entries[key]
	switch {
	case e == nil:
	case e.claimed != nil:
		return e.claimed, nil
	default:
		e.deadline = q.advance() + e.ttl
	}
	return nil, nil
}

// Claim reports whether key is due. If so, the owner must call Set or Release.
func (q *Queue[K]) Claim(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil || e.claimed != nil || e.deadline > q.clock {
		return false
	}
	e.claimed = make(chan struct{})
	return true
}

// Release ends the claim of key, if there is one.
func (q *Queue[K]) Release(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(q.entries[key])
}

func (q *Queue[K]) release(e *entry[K]) {
	if e != nil && e.claimed != nil {
		close(e.claimed)
		e.claimed = nil
	}
}

// Left returns the time until key is due, or zero if key has no TTL. It is never less than was
// promised. It may be more by the time since the last Tick.
func (q *Queue[K]) Left(key K) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil {
		return 0
	}
	return max(e.deadline-q.clock, 1)
}

// Pause stops the clock of the Queue while the store can receive no renewals, until resume is
// called.
func (q *Queue[K]) Pause() (resume func()) {
	q.setPaused(true)
	return func() { q.setPaused(false) }
}

func (q *Queue[K]) setPaused(paused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advance() // counts the time before the pause, and not the pause
	q.paused = paused
}

// Stop ends the calls of expire and waits for the last one. After that, Renew returns err. A second
// call has no effect.
func (q *Queue[K]) Stop(err error) {
	q.mu.Lock()
	if q.stopped == nil {
		q.stopped = err
	}
	q.mu.Unlock()
	q.running.Wait()
}

// advance reads the clock of the Queue. That clock never runs faster than real time, and it does
// not count the time in which renewals could not arrive. If more than two Ticks have passed since
// the last call, the process was stopped or had no processor, so they count as one Tick.
func (q *Queue[K]) advance() time.Duration {
	now := q.now()
	passed := now.Sub(q.read)
	switch {
	case q.paused:
		passed = 0
	case passed > 2*Tick:
		passed = Tick
	}
	q.clock, q.read = q.clock+max(passed, 0), now
	return q.clock
}

// arm sets the timer if the Queue has entries.
func (q *Queue[K]) arm() {
	if q.armed = len(q.entries) > 0 && q.stopped == nil; q.armed {
		time.AfterFunc(Tick, q.run)
	}
}

// run calls expire until no key is due.
func (q *Queue[K]) run() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped != nil {
		return
	}
	q.running.Add(1)
	defer q.running.Done()
	for due := q.due(); len(due) > 0 && q.stopped == nil; due = q.due() {
		q.mu.Unlock()
		q.expire(due)
		q.mu.Lock()
	}
	q.arm()
}

// due returns keys that are due, and looks at them again in one Tick.
func (q *Queue[K]) due() (due []K) {
	now := q.advance()
	for len(due) < maxDue && len(q.checks) > 0 && q.checks[0].check <= now {
		e := q.checks[0]
		if e.check = e.deadline; e.deadline <= now {
			due = append(due, e.key)
			e.check = now + Tick
		}
		heap.Fix(&q.checks, 0)
	}
	return due
}

// checkHeap is a heap of entries.
type checkHeap[K comparable] []*entry[K]

func (h checkHeap[K]) Len() int           { return len(h) }
func (h checkHeap[K]) Less(i, j int) bool { return h[i].check < h[j].check }

func (h checkHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *checkHeap[K]) Push(x any) {
	e := x.(*entry[K])
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop implements [heap.Interface].
func (h *checkHeap[K]) Pop() any {
	old := *h
	last := len(old) - 1
	e := old[last]
	old[last] = nil
	*h = old[:last]
	return e
}
