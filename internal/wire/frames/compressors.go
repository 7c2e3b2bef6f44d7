package frames

import (
	"sync"
	"time"
)

// A Compressor compresses the events of a segment. A result may refer to the text of all earlier
// calls since Reset.
type Compressor interface {
	// Reset makes the Compressor forget all text.
	Reset()
	// AppendFlushed appends p, compressed so that a decoder can return all of it at once.
	AppendFlushed(dst, p []byte) []byte
}

// Compressors lends a limited number of compressors to feeds. Each one takes about a megabyte, so
// a feed without events returns its compressor after [SegmentIdleTimeout]. It is safe for
// concurrent use.
type Compressors struct {
	// Immutable after construction.
	max int // negative means no limit
	get func() Compressor
	put func(Compressor)

	mu sync.Mutex
	// Guarded by mu.
	users    map[*Sequence]struct{}
	sweeping bool // a timer will call takeIdle
}

// stealAfter is the silence after which a feed may lose its compressor to another feed.
const stealAfter = time.Second

// NewCompressors returns Compressors that lends at most limit compressors at a time, or any number
// if limit is negative. It calls get for each compressor that it lends, and put for each compressor
// that comes back.
func NewCompressors(limit int, get func() Compressor, put func(Compressor)) *Compressors {
	return &Compressors{max: limit, get: get, put: put, users: make(map[*Sequence]struct{})}
}

// Lent returns the number of compressors that are lent.
func (c *Compressors) Lent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.users)
}

// lend returns a compressor for s, or nil if all of them are in use. s.mu must be held.
func (c *Compressors) lend(s *Sequence, now time.Time) Compressor {
	for {
		victim, ok := c.reserve(s, now)
		switch {
		case ok:
			return c.get()
		case victim == nil:
			return nil
		case !victim.mu.TryLock():
			return nil // the victim uses its compressor now
		}
		victim.release()
		victim.mu.Unlock()
	}
}

// reserve counts s as a user and returns true. If there are too many users, it returns false and
// the user that has been idle for the longest time, or nil if no user is idle.
func (c *Compressors) reserve(s *Sequence, now time.Time) (victim *Sequence, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.max < 0 || len(c.users) < c.max {
		c.users[s] = struct{}{}
		c.sweepAfter(SegmentIdleTimeout)
		return nil, true
	}
	longest := stealAfter
	for u := range c.users {
		if idle := u.idleTime(now); idle >= longest {
			victim, longest = u, idle
		}
	}
	return victim, false
}

// giveBack takes a compressor back from s.
func (c *Compressors) giveBack(s *Sequence, lent Compressor) {
	c.mu.Lock()
	delete(c.users, s)
	c.mu.Unlock()
	c.put(lent)
}

// sweepAfter starts a timer that calls takeIdle, unless there is one. c.mu must be held.
func (c *Compressors) sweepAfter(d time.Duration) {
	if !c.sweeping {
		c.sweeping = true
		time.AfterFunc(d, c.takeIdle)
	}
}

// takeIdle takes the compressors of feeds that have been idle for SegmentIdleTimeout.
func (c *Compressors) takeIdle() {
	for _, s := range c.idle(time.Now()) {
		if s.mu.TryLock() { // otherwise s is in use again
			s.release()
			s.mu.Unlock()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sweeping = false; len(c.users) > 0 {
		c.sweepAfter(SegmentIdleTimeout / 3)
	}
}

func (c *Compressors) idle(now time.Time) (idle []*Sequence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.users {
		if s.idleTime(now) >= SegmentIdleTimeout {
			idle = append(idle, s)
		}
	}
	return idle
}
