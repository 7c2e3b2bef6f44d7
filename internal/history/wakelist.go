package history

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A wakeList holds the cursors that wait for the next event of a feed. take removes all of them at
// once, and starts the next round.
//
// Lock order: Log.mu before the mutexes of wakeList, waker and startWait. While one of
// these three is held, no other mutex is acquired. Wake functions are called without any
// mutex held.
type wakeList struct {
	mu sync.Mutex
	// Guarded by mu.
	waiting []*live // the cursors armed since the last call of take
	round   uint32  // the number of calls of take that emptied waiting; it may wrap around
	spare   []*live // an empty slice for the next round
}

// A wakeEntry is the entry of a cursor in the wakeList of its feed. It is guarded by
// wakeList.mu.
type wakeEntry struct {
	wake func() // nil if the cursor is not armed
	// round is the round in which the cursor was armed. It is only compared with recent rounds,
	// whose cursors are still being woken, so 32 bits suffice.
	round uint32
	slot  int32 // the index of the cursor in wakeList.waiting; only valid in that round
}

// arm registers wake, which is called once when the next event arrives. It returns false if c
// already has an event or an error to return.
func (l *wakeList) arm(c *live, wake func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.isReady() {
		return false
	}
	e := &c.entry
	if e.wake == nil || e.round != l.round {
		e.round, e.slot = l.round, int32(len(l.waiting))
		l.waiting = append(l.waiting, c)
	}
	e.wake = wake
	return true
}

// disarm removes c from the list and returns its wake function, or nil if c was not armed.
func (l *wakeList) disarm(c *live) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &c.entry
	wake := e.wake
	e.wake = nil
	if wake != nil && e.round == l.round {
		last := len(l.waiting) - 1
		moved := l.waiting[last]
		l.waiting[e.slot] = moved
		moved.entry.slot = e.slot
		l.waiting[last] = nil
		l.waiting = l.waiting[:last]
	}
	return wake
}

// take starts a new round and returns the cursors of the previous round, or nil if there
// are none.
func (l *wakeList) take() *wakeBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil
	}
	// Leave the individual cursors to the waker, because visiting thousands of them here
	// would delay the writer.
	b := &wakeBatch{list: l, cursors: l.waiting, round: l.round}
	l.waiting, l.spare = l.spare, nil
	l.round++
	return b
}

// A wakeBatch holds the cursors that were armed in one round of a wakeList.
type wakeBatch struct {
	// Immutable after construction.
	list    *wakeList
	cursors []*live // each element belongs to the goroutine that took it
	round   uint32

	taken int // number of cursors that a goroutine has taken; guarded by waker.mu
	woken int // number of cursors woken; guarded by list.mu
}

// wake wakes every cursor in part, a slice of b.cursors, that is still armed. It returns the number
// of wake functions called.
func (b *wakeBatch) wake(part []*live) (called uint64) {
	var ready [wakeChunk]func()
	n := 0
	b.list.mu.Lock()
	for i, c := range part {
		if e := &c.entry; e.wake != nil && e.round == b.round {
			ready[n] = e.wake
			e.wake = nil
			n++
		}
		part[i] = nil
	}
	if b.woken += len(part); b.woken == len(b.cursors) && cap(b.cursors) > cap(b.list.spare) {
		b.list.spare = b.cursors[:0]
	}
	b.list.mu.Unlock()
	for _, f := range ready[:n] {
		f()
	}
	return uint64(n)
}

// A waker calls wake functions on goroutines of its own, because calling thousands of wake
// functions takes milliseconds, and a writer must not wait for that. The goroutines exist only
// while there is work.
type waker struct {
	woken atomic.Uint64 // the number of wake functions called

	mu sync.Mutex
	// Guarded by mu.
	queue   []*wakeBatch
	running int // number of goroutines
}

// wakeChunk is the number of cursors that a goroutine takes at a time.
const wakeChunk = 256

// add queues b, which may be nil. Call start to process the queue.
func (w *waker) add(b *wakeBatch) {
	if b == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, b)
}

// start ensures that enough goroutines process the queue: one per chunk, but at most
// GOMAXPROCS.
func (w *waker) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit, chunks := runtime.GOMAXPROCS(0), 0
	for _, b := range w.queue {
		if chunks += (len(b.cursors) - b.taken + wakeChunk - 1) / wakeChunk; chunks >= limit {
			break
		}
	}
	for ; w.running < min(chunks, limit); w.running++ {
		go w.run() // returns when the queue is empty
	}
}

func (w *waker) run() {
	for {
		b, part := w.next()
		if b == nil {
			return
		}
		w.woken.Add(b.wake(part))
	}
}

// next returns the next cursors to wake. If there are none, it returns nil, and the
// goroutine must return.
func (w *waker) next() (*wakeBatch, []*live) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.queue = nil
		w.running--
		return nil, nil
	}
	b := w.queue[0]
	n := min(wakeChunk, len(b.cursors)-b.taken)
	part := b.cursors[b.taken : b.taken+n]
	if b.taken += n; b.taken == len(b.cursors) {
		w.queue[0] = nil
		w.queue = w.queue[1:]
	}
	return b, part
}
