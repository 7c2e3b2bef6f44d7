package wire

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// NewSegmenter returns a Segmenter with at most limit deflate compressors at a time, or any number
// if limit is negative.
func NewSegmenter(limit int) *frames.Segmenter {
	return frames.NewSegmenter(limit,
		func() frames.Compressor { return compress.GetSegmentDeflater() },
		func(c frames.Compressor) { compress.PutSegmentDeflater(c.(*compress.SegmentDeflater)) })
}

// A segmentation is the position of a stream in the segments of its feed.
type segmentation struct {
	segmenter *frames.Segmenter // immutable

	feed     *frames.Feed     // the feed of the newest event
	sequence *frames.Sequence // the segments of feed; nil if feed is nil
	// If segment is not nil, the client's history ends with the events 0 to index-1 of segment,
	// without other text between them.
	segment *frames.Segment
	index   int
}

// next returns the frame of ev, an event of a feed, in the form with the handle h.
func (s *segmentation) next(h frames.Form, ev listwatch.Event, ref frames.Ref) ([]byte, error) {
	f := formOf(h)
	s.join(ref.Node.Feed(), h)
	place, err := s.sequence.Place(ref.Node, s.segmenter, func(c frames.Compressor) ([]byte, error) {
		return f.SegmentFrame(f.represent(ev), c.AppendFlushed)
	})
	if err != nil {
		return nil, err
	}
	if place != nil && s.follow(place) {
		if frame, ok := place.Frame(); ok {
			return frame, nil
		}
	}
	frame, err := cached(h, ev, ref.Frames)
	if place != nil && s.segment != nil && !f.dependsOnTime() && f.entersHistory(frame) {
		// The segment's own frame was dropped. This frame has the same text, so the next frame of
		// the segment may follow it.
		return frame, err
	}
	s.segment = nil
	return frame, err
}

// interrupt returns frame, which is not part of a segment. If its text enters the client's history,
// no frame of the current segment can follow.
func (s *segmentation) interrupt(f form, frame []byte) []byte {
	if len(frame) > 0 && f.entersHistory(frame) {
		s.segment = nil
	}
	return frame
}

// follow reports whether s may send the frame of place. It may if the frame is the first one of a
// segment, or the next one of the segment that s is in. In these cases follow moves s past the
// frame. Otherwise s leaves its segment and waits for the next one.
func (s *segmentation) follow(place *frames.Place) bool {
	if place.Index > 0 && (place.Segment != s.segment || place.Index != s.index) {
		if s.segment = nil; place.Segment.Continues(place.Index+1, time.Now()) {
			s.sequence.Wait()
		}
		return false
	}
	s.segment, s.index = place.Segment, place.Index+1
	return true
}

// join makes s a user of the segments of f in the form with the handle h.
func (s *segmentation) join(f *frames.Feed, h frames.Form) {
	if f != s.feed {
		s.leave()
		s.feed, s.sequence = f, f.Join(h)
	}
}

// leave undoes join.
func (s *segmentation) leave() {
	if s.sequence != nil {
		s.sequence.Leave()
	}
	s.feed, s.sequence, s.segment = nil, nil, nil
}
