package history

import (
	"runtime"
	"sync"
)

// A waker calls the wake functions of the cursors that slept when something came for them, on goroutines of its own that live only
// while there is something to do. With thousands of sleepers that takes milliseconds, which a writer must not wait for.
type waker struct {
	mu sync.Mutex
	// Guarded by mu.
	queue   []*sleepers
	running int
}

// sleepers are the cursors that were armed in one round of a feed.
type sleepers struct {
	// Immutable after construction.
	feed    *feed
	cursors []*Cursor // each place is used by the goroutine that took it
	round   uint64

	taken int // cursors that a goroutine has taken; guarded by waker.mu
	woken int // cursors done with; guarded by feed.mu
}

// wakeChunk is how many cursors are woken at one go: the unit by which goroutines share the work.
const wakeChunk = 256

func (w *waker) add(s *sleepers) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, s)
}

// start sees to it that goroutines work the queue off: no more than there are processors.
func (w *waker) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	want := 0
	for _, s := range w.queue {
		if want += (len(s.cursors) - s.taken + wakeChunk - 1) / wakeChunk; want >= runtime.GOMAXPROCS(0) {
			break
		}
	}
	for want = min(want, runtime.GOMAXPROCS(0)); w.running < want; w.running++ {
		go w.run() // ends by itself when the queue is empty
	}
}

func (w *waker) run() {
	for {
		s, chunk := w.take()
		if s == nil {
			return
		}
		s.wake(chunk)
	}
}

// take returns the next cursors to wake; nil: there are none, and the caller must end.
func (w *waker) take() (*sleepers, []*Cursor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.queue = nil
		w.running--
		return nil, nil
	}
	s := w.queue[0]
	n := min(wakeChunk, len(s.cursors)-s.taken)
	chunk := s.cursors[s.taken : s.taken+n]
	if s.taken += n; s.taken == len(s.cursors) {
		w.queue[0] = nil
		w.queue = w.queue[1:]
	}
	return s, chunk
}

// wake calls the wake functions that are still armed from the round of s.
func (s *sleepers) wake(chunk []*Cursor) {
	var ready [wakeChunk]func()
	n := 0
	s.feed.mu.Lock()
	for i, c := range chunk {
		if c.wake != nil && c.round == s.round {
			ready[n] = c.wake
			c.wake = nil
			n++
		}
		chunk[i] = nil
	}
	if s.woken += len(chunk); s.woken == len(s.cursors) && cap(s.cursors) > cap(s.feed.spare) {
		s.feed.spare = s.cursors[:0]
	}
	s.feed.mu.Unlock()
	for _, f := range ready[:n] {
		f()
	}
}

// sleep arms f for c, unless there is something for c already.
func (f *feed) sleep(c *Cursor, wake func()) (asleep bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.closed.Load() || c.node.next.Load() != nil || c.log.endErr() != nil {
		return false
	}
	if c.wake == nil || c.round != f.round {
		c.round, c.slot = f.round, len(f.sleepers)
		f.sleepers = append(f.sleepers, c)
	}
	c.wake = wake
	return true
}

// rouse takes c from the sleepers, for good, and returns its wake function if one was armed.
func (f *feed) rouse(c *Cursor) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	wake := c.wake
	c.wake = nil
	if wake != nil && c.round == f.round {
		end := len(f.sleepers) - 1
		moved := f.sleepers[end]
		f.sleepers[c.slot] = moved
		moved.slot = c.slot
		f.sleepers[end] = nil
		f.sleepers = f.sleepers[:end]
	}
	return wake
}
