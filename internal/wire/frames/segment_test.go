package frames

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A textCompressor is a Compressor whose results are the whole text since Reset.
type textCompressor struct{ text []byte }

func (c *textCompressor) Reset() { c.text = nil }

func (c *textCompressor) AppendFlushed(dst, p []byte) []byte {
	c.text = append(c.text, p...)
	return append(dst, c.text...)
}

func newSegmenter(limit int) *Segmenter {
	return NewSegmenter(limit, func() Compressor { return new(textCompressor) }, func(Compressor) {})
}

// A testFeed is a Feed with a Sequence that the given number of streams have joined.
type testFeed struct {
	t *testing.T
	*Feed
	*Sequence
	segmenter *Segmenter
}

func newTestFeed(t *testing.T, c *Segmenter, streams int) *testFeed {
	f := &testFeed{t: t, Feed: NewFeed(nil), segmenter: c}
	form := newForm()
	for range streams {
		f.Sequence = f.Join(form)
	}
	return f
}

func (f *testFeed) node() *Node {
	n := new(Node)
	n.Init(f.Feed)
	return n
}

// place returns the Place of n, or nil if n is not part of a segment. The compressed text is a
// single byte, the number of n.
func (f *testFeed) place(n *Node) *Place {
	f.t.Helper()
	p, err := f.Place(n, f.segmenter, func(c Compressor) ([]byte, error) {
		return c.AppendFlushed(nil, []byte{byte(n.number)}), nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// want places the next node, and verifies its index in its segment. An index of -1 means that the
// node is not part of a segment.
func (f *testFeed) want(index int) *Place {
	f.t.Helper()
	p := f.place(f.node())
	switch {
	case p == nil && index >= 0:
		f.t.Fatalf("the event is not part of a segment, want index %d", index)
	case p != nil && p.Index != index:
		f.t.Fatalf("the event has index %d, want %d", p.Index, index)
	}
	return p
}

func TestSegmentEndsAfter64Events(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFeed(t, newSegmenter(-1), 2)
		for range 2 {
			for i := range 64 {
				p := f.want(i)
				frame, ok := p.Frame()
				if !ok || len(frame) != i+1 {
					t.Fatalf("event %d: the frame depends on %d events, want %d", i, len(frame), i+1)
				}
				if got := p.Segment.Continues(i+1, time.Now()); got != (i < 63) {
					t.Fatalf("event %d: Continues is %v", i, got)
				}
			}
		}
	})
}

func TestWaitingStreamEndsSegmentAfter16Events(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFeed(t, newSegmenter(-1), 2)
		f.want(0)
		f.Wait()
		for i := 1; i < 16; i++ {
			f.want(i)
		}
		for i := range 20 {
			f.want(i)
		}
		f.Wait()
		f.want(0)
	})
}

func TestGapStartsSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFeed(t, newSegmenter(-1), 2)
		f.want(0)
		f.want(1)
		skipped := f.node()
		f.want(0)
		if f.place(skipped) != nil {
			t.Error("an event before the segment was added to it")
		}
		f.want(1)
	})
}

func TestSilenceEndsSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSegmenter(-1)
		f := newTestFeed(t, c, 2)
		f.want(0)
		p := f.want(1)
		time.Sleep(SegmentIdleTimeout - 1)
		if !p.Segment.Continues(2, time.Now()) {
			t.Error("the segment ended early")
		}
		f.want(2)
		time.Sleep(SegmentIdleTimeout)
		if !p.Segment.Continues(2, time.Now()) {
			t.Error("the segment does not continue after index 1")
		}
		if p.Segment.Continues(3, time.Now()) {
			t.Error("the segment does not end after index 2")
		}
		f.want(0)
		time.Sleep(2 * SegmentIdleTimeout)
		if n := c.InUse(); n != 0 {
			t.Errorf("an idle feed holds %d compressors, want 0", n)
		}
		f.want(0)
	})
}

func TestSingleStreamNeedsNoCompressor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSegmenter(-1)
		f := newTestFeed(t, c, 1)
		f.want(-1)
		second := f.Join(f.form)
		f.want(0)
		f.want(1)
		second.Leave()
		if n := c.InUse(); n != 0 {
			t.Errorf("a single stream holds %d compressors, want 0", n)
		}
		f.want(-1)
	})
}

func TestCompressorsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSegmenter(2)
		a, b, late := newTestFeed(t, c, 2), newTestFeed(t, c, 2), newTestFeed(t, c, 2)
		a.want(0)
		time.Sleep(stealAfter)
		b.want(0)
		late.want(0) // takes the compressor of a
		a.want(-1)
		b.want(1)
		time.Sleep(stealAfter)
		b.want(2)
		a.want(0) // takes the compressor back
		late.want(-1)
		if n := c.InUse(); n != 2 {
			t.Errorf("%d compressors are lent, want 2", n)
		}
		none := newSegmenter(0)
		newTestFeed(t, none, 2).want(-1)
	})
}

func TestFailedEventEndsSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFeed(t, newSegmenter(-1), 2)
		f.want(0)
		broken := errors.New("broken")
		if _, err := f.Place(f.node(), f.segmenter,
			func(Compressor) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
			t.Errorf("got error %v, want the builder's", err)
		}
		f.want(0)
	})
}

func TestDroppedSegmentFrameIsNotRebuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(10)
		f := newTestFeed(t, newSegmenter(-1), 2)
		f.Feed.budget, f.Sequence.budget = budget, budget
		n := f.node()
		first := f.place(n)
		for i := 1; i < 5; i++ {
			f.want(i) // the frames have 1, 2, 3, 4 and 5 bytes
		}
		if _, ok := first.Frame(); ok {
			t.Error("the budget kept the first frame")
		}
		if f.place(n) != first {
			t.Error("the first frame has another place now")
		}
		if used := budget.Used(); used > 10 {
			t.Errorf("used is %d, want at most 10", used)
		}
		last := f.node()
		last.Drop()
		f.place(last)
		if used := budget.Used(); used > 10 {
			t.Errorf("used is %d after an event was dropped, want at most 10", used)
		}
	})
}

func TestStreamsPlaceEventsConcurrently(t *testing.T) {
	const streams, events = 4, 3000
	c := newSegmenter(1)
	f := newTestFeed(t, c, streams)
	other := newTestFeed(t, c, streams)
	nodes := make([]*Node, events)
	for i := range nodes {
		nodes[i] = f.node()
	}
	var running sync.WaitGroup
	for range streams {
		running.Go(func() {
			for i, n := range nodes {
				p := f.place(n)
				if p == nil {
					continue
				}
				frame, _ := p.Frame()
				if len(frame) != p.Index+1 || frame[p.Index] != byte(n.number) {
					t.Errorf("event %d: the frame at index %d is %v", i, p.Index, frame)
				}
				if i%100 == 0 {
					f.Wait()
				}
			}
		})
		running.Go(func() {
			for range 100 {
				other.Join(other.form).Leave()
				c.takeIdle()
				c.InUse()
			}
		})
	}
	running.Wait()
}
