package frames

import (
	"sync"
	"time"
)

// A Compressor compresses the events of a segment. A result may refer to the text of all earlier
// calls since Reset.
type Compressor interface {
	// Reset discards the history, so that later results do not refer to earlier text.
	Reset()
	// AppendFlushed appends p, compressed so that a decoder can return all of it at once.
	AppendFlushed(dst, p []byte) []byte
}

// A Segmenter lends a limited number of compressors to feeds. Each one takes about a megabyte, so a
// feed without events returns its compressor after [SegmentIdleTimeout]. A Segmenter is safe for
// concurrent use by many streams.
type Segmenter struct {
	// Immutable after construction.
	max int // negative means no limit
	get func() Compressor
	put func(Compressor)

	mu sync.Mutex
	// Guarded by mu.
	users    map[*Sequence]struct{}
	sweeping bool // a timer will call takeIdle
}

const (
	// SegmentIdleTimeout is the silence after which a segment ends and its compressor is free. It
	// is shorter than the interval of heartbeats, which are not part of a segment.
	SegmentIdleTimeout = 15 * time.Second
	// stealAfter is the silence after which a feed may lose its compressor to another feed.
	stealAfter = time.Second
)

// NewSegmenter returns a Segmenter that lends at most limit compressors at a time, or any number if
// limit is negative. A feed takes a compressor for each [Form] that two or more of its streams
// have. If no compressor is free, the events of the feed are compressed separately. The Segmenter
// calls get for each compressor that it lends, and put for each compressor that is returned.
func NewSegmenter(limit int, get func() Compressor, put func(Compressor)) *Segmenter {
	return &Segmenter{max: limit, get: get, put: put, users: make(map[*Sequence]struct{})}
}

// InUse returns the number of compressors that are lent.
func (s *Segmenter) InUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.users)
}

// lend returns a compressor for b, or nil if all of them are in use.
func (s *Segmenter) lend(b *Sequence, now time.Time) Compressor {
	for {
		victim, ok := s.reserve(b, now)
		if ok {
			return s.get()
		}
		if victim == nil || !victim.tryRelease() {
			return nil
		}
	}
}

// reserve counts b as a user and returns true. If there are too many users, it returns false and
// the user that has been idle for the longest time, or nil if no user is idle.
func (s *Segmenter) reserve(b *Sequence, now time.Time) (victim *Sequence, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.max < 0 || len(s.users) < s.max {
		s.users[b] = struct{}{}
		s.sweepAfter(SegmentIdleTimeout)
		return nil, true
	}
	longest := stealAfter
	for u := range s.users {
		if idle := u.idleTime(now); idle >= longest {
			victim, longest = u, idle
		}
	}
	return victim, false
}

// giveBack ends the loan of a compressor to b.
func (s *Segmenter) giveBack(b *Sequence, lent Compressor) {
	s.mu.Lock()
	delete(s.users, b)
	s.mu.Unlock()
	s.put(lent)
}

// sweepAfter starts a timer that calls takeIdle, unless there is one. s.mu must be held.
func (s *Segmenter) sweepAfter(d time.Duration) {
	if !s.sweeping {
		s.sweeping = true
		time.AfterFunc(d, s.takeIdle)
	}
}

// takeIdle takes the compressors of feeds that have been idle for SegmentIdleTimeout.
func (s *Segmenter) takeIdle() {
	for _, b := range s.idle(time.Now()) {
		b.tryRelease() // fails if the compressor is in use again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeping = false; len(s.users) > 0 {
		s.sweepAfter(SegmentIdleTimeout / 3)
	}
}

func (s *Segmenter) idle(now time.Time) (idle []*Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.users {
		if b.idleTime(now) >= SegmentIdleTimeout {
			idle = append(idle, b)
		}
	}
	return idle
}
