package frames

import (
	"sync"
	"sync/atomic"
	"time"
)

// The limits of a [Segment].
const (
	// maxSegment is the number of events after which a segment ends.
	maxSegment = 64
	// minSegment is the number of events after which a segment ends if a stream waits for the next
	// segment. Shorter segments would save traffic for the waiting stream, but cause more traffic
	// for all other streams.
	minSegment = 16
)

// A Ref refers to the frames of one event. The zero Ref belongs to an event whose frames are not
// cached.
type Ref struct {
	// Frames holds the frames that can be sent anywhere in a stream.
	Frames *Frames
	// Node is the position of the event in a feed, with the frames that are compressed together
	// with earlier events. It is nil if the event was not read from a feed.
	Node *Node
}

// A Feed holds the segments of the events of one selection, in each [Form]. It is safe for
// concurrent use. The zero Feed has no budget.
type Feed struct {
	budget *Budget // immutable; nil if unlimited

	nodes uint64 // the number of nodes so far; guarded by the lock of the log

	mu        sync.Mutex
	sequences []*Sequence // guarded by mu
}

// NewFeed returns a Feed whose frames count against b.
func NewFeed(b *Budget) *Feed { return &Feed{budget: b} }

// Join adds a stream to the segments in the given form, and returns their Sequence. The stream must
// call [Sequence.Leave] when it ends.
func (f *Feed) Join(form Form) *Sequence {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sequences {
		if s.form == form {
			s.streams.Add(1)
			return s
		}
	}
	s := &Sequence{form: form, budget: f.budget}
	s.streams.Add(1)
	f.sequences = append(f.sequences, s)
	return s
}

// A Node is an event of a [Feed], with its frames in segments. It is safe for concurrent use.
type Node struct {
	// Immutable after Init.
	feed   *Feed
	number uint64 // one more than the number of the preceding node

	dropped atomic.Bool
	places  atomic.Pointer[Place]
}

// Init makes n the next node of f. It must be called before the first use of n. It must not be
// called for two nodes of f at the same time.
func (n *Node) Init(f *Feed) {
	f.nodes++
	n.feed, n.number = f, f.nodes
}

// Feed returns the feed of n, or nil if n is nil.
func (n *Node) Feed() *Feed {
	if n == nil {
		return nil
	}
	return n.feed
}

// Drop drops the frames of n permanently, because its event has left the history.
func (n *Node) Drop() {
	n.dropped.Store(true)
	for p := n.places.Load(); p != nil; p = p.next {
		p.frames.Drop()
	}
}

// place returns the place of n in the segments of a form, or nil.
func (n *Node) place(form Form) *Place {
	for p := n.places.Load(); p != nil; p = p.next {
		if p.form == form {
			return p
		}
	}
	return nil
}

func (n *Node) add(p *Place, data []byte, b *Budget) {
	p.frames.SetBudget(b)
	p.frames.add(&frame{form: p.form, data: data})
	for {
		p.next = n.places.Load()
		if n.places.CompareAndSwap(p.next, p) {
			break
		}
	}
	if n.dropped.Load() { // Drop may not have seen p
		p.frames.Drop()
	}
}

// A Place is the position of an event in a [Segment], and its frame.
type Place struct {
	// Segment and Index identify the position. They are kept as long as the event.
	Segment *Segment
	Index   int

	form   Form
	frames Frames // holds at most one frame, until the budget drops it
	next   *Place
}

// Frame returns the frame of the event, which may refer to all earlier frames of the segment. ok is
// false if the frame was dropped. A dropped frame is never built again, because the compressor no
// longer has the state in which it compressed the frame.
func (p *Place) Frame() (data []byte, ok bool) { return p.frames.Get(p.form) }

// A Segment is a series of consecutive events of a feed that are compressed one after the other
// with the same history. A frame may refer to the text of all earlier frames of its segment, and
// to nothing else.
type Segment struct {
	sequence *Sequence // immutable
	placed   atomic.Int32
	ended    atomic.Bool
}

// Continues reports whether s has an event with the given index, or may still get such an event.
// now is the current time.
func (s *Segment) Continues(next int, now time.Time) bool {
	if int(s.placed.Load()) > next {
		return true
	}
	return !s.ended.Load() && s.sequence.idleTime(now) < SegmentIdleTimeout
}

// A Sequence holds the segments of a [Feed] in one [Form]. It is safe for concurrent use.
type Sequence struct {
	// Immutable after construction.
	form   Form
	budget *Budget

	streams atomic.Int32 // the number of streams that have joined
	waiting atomic.Bool  // a stream waits for the next segment
	used    atomic.Int64 // when an event was compressed last, in Unix nanoseconds

	mu sync.Mutex
	// Guarded by mu.
	segment    *Segment   // the segment that the next event may continue; nil if there is none
	compressor Compressor // has the text of segment as its history; nil if none is lent to s
	lender     *Segmenter
	last       uint64 // the number of the newest event that was offered to the compressor
}

// idleTime returns the time from the newest compressed event to now.
func (s *Sequence) idleTime(now time.Time) time.Duration {
	return time.Duration(now.UnixNano() - s.used.Load())
}

// Wait requests that the current segment ends early, because a stream has missed a part of it and
// waits for the next one.
func (s *Sequence) Wait() { s.waiting.Store(true) }

// Leave removes a stream. If at most one stream is left, Leave returns the compressor, because that
// stream does not need it.
func (s *Sequence) Leave() {
	if s.streams.Add(-1) >= 2 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

// Place returns the place of n. If n has no place yet, and is newer than all events that have one,
// Place calls build with a compressor of c. build must compress the text of n with this compressor,
// unless it returns an error.
//
// Place returns nil if n cannot be part of a segment: another stream is ahead of n, c has no
// compressor to lend, or only one stream needs the frame.
func (s *Sequence) Place(n *Node, c *Segmenter, build func(c Compressor) ([]byte, error)) (*Place, error) {
	if p := n.place(s.form); p != nil {
		return p, nil
	}
	if s.streams.Load() < 2 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := n.place(s.form); p != nil {
		return p, nil
	}
	if n.number <= s.last {
		// A stream that is ahead of n has begun a segment after n. The compressor cannot go back.
		return nil, nil
	}
	follows := n.number == s.last+1
	s.last = n.number
	now := time.Now()
	if !s.prepare(c, follows, now) {
		return nil, nil
	}
	data, err := build(s.compressor)
	if err != nil {
		s.endSegment() // the segment lacks the text of n
		return nil, err
	}
	p := &Place{Segment: s.segment, Index: int(s.segment.placed.Load()), form: s.form}
	n.add(p, data, s.budget)
	if s.segment.placed.Add(1) == maxSegment {
		s.endSegment()
	}
	return p, nil
}

// prepare makes s ready for the next event. If follows is true, and the current segment may
// continue, the event becomes part of this segment. Otherwise prepare starts a new segment. It
// returns false if there is no compressor.
func (s *Sequence) prepare(c *Segmenter, follows bool, now time.Time) bool {
	if g := s.segment; g != nil && (!follows || !g.Continues(int(g.placed.Load()), now) ||
		g.placed.Load() >= minSegment && s.waiting.Load()) {
		s.endSegment()
	}
	if s.compressor == nil {
		if s.compressor = c.lend(s, now); s.compressor == nil {
			return false
		}
		s.lender = c
	}
	s.used.Store(now.UnixNano())
	if s.segment == nil {
		s.waiting.Store(false)
		s.compressor.Reset()
		s.segment = &Segment{sequence: s}
	}
	return true
}

// endSegment makes the next event begin a new segment. s.mu must be held.
func (s *Sequence) endSegment() {
	if s.segment != nil {
		s.segment.ended.Store(true)
		s.segment = nil
	}
}

// tryRelease releases the compressor, unless another goroutine uses s.
func (s *Sequence) tryRelease() bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	s.release()
	return true
}

// release ends the segment and returns the compressor. s.mu must be held.
func (s *Sequence) release() {
	s.endSegment()
	if s.compressor != nil {
		s.lender.giveBack(s, s.compressor)
		s.compressor, s.lender = nil, nil
	}
}
