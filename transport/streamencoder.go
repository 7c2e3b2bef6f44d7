package transport

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/framecache"
)

// Compressors limits the number of compressors for segments, and so their memory. In a segment, an
// event is compressed with the history of the events before it. Compressors is safe for concurrent
// use by many streams.
type Compressors struct{ c *framecache.Compressors }

// NewCompressors returns Compressors that use at most limit compressors at a time. Each compressor
// takes about a megabyte. A negative limit means no limit. A feed takes a compressor for each wire
// form that two or more of its streams have. If no compressor is free, the events of the feed are
// compressed separately.
func NewCompressors(limit int) *Compressors {
	return &Compressors{framecache.NewCompressors(limit,
		func() framecache.Compressor { return compress.GetSegmentDeflater() },
		func(c framecache.Compressor) { compress.PutSegmentDeflater(c.(*compress.SegmentDeflater)) })}
}

// InUse returns the number of compressors in use.
func (c *Compressors) InUse() int { return c.c.Lent() }

// A StreamEncoder encodes the events of one stream. Its frames must be sent in the order in which
// they were encoded. It is not safe for concurrent use.
//
// The decompressor of a client keeps the last 32 KiB of text as its history. A frame of a segment
// refers to the text of the earlier events of its segment. So the stream may send the frame only
// directly after exactly this text, without other text in between. The StreamEncoder keeps track of
// that. In all other cases it uses the frames of the [Encoder], which do not refer to earlier text.
type StreamEncoder struct {
	encoder       *Encoder
	*segmentation // nil if the stream has no segments, so that most StreamEncoders are small
}

// A segmentation is the position of a stream in the segments of its feed.
type segmentation struct {
	compressors *framecache.Compressors // immutable

	feed     *framecache.Feed     // the feed of the newest event
	sequence *framecache.Sequence // the segments of feed; nil if feed is nil
	// If segment is not nil, the client's history ends with the events 0 to next-1 of segment,
	// without other text between them.
	segment *framecache.Segment
	next    int
}

// NewStreamEncoder returns a StreamEncoder for s, in the wire form of s.Encoder. It uses segments
// if compressors is not nil and s.Segments is true. Close must be called after the last event.
func (s *Stream) NewStreamEncoder(compressors *Compressors) *StreamEncoder {
	e := &StreamEncoder{encoder: s.Encoder}
	if s.Segments && compressors != nil && s.Encoder.canShareHistory() {
		e.segmentation = &segmentation{compressors: compressors.c}
	}
	return e
}

// Event returns the frame of e. Other streams share the frame, so it must not be modified.
func (s *StreamEncoder) Event(e listwatch.Event) ([]byte, error) {
	if e.Type == listwatch.Bookmark || e.Type == listwatch.Synced {
		frame, err := s.private(s.privateEncoder().Event(e))
		s.encoder = s.encoder.AfterFirst()
		return frame, err
	}
	c := s.encoder
	s.encoder = c.AfterFirst()
	node := e.Node()
	if s.segmentation == nil || node == nil || c != s.encoder {
		return s.private(c.Event(e))
	}
	s.join(node.Feed())
	place, err := s.sequence.Place(node, s.compressors, func(d framecache.Compressor) ([]byte, error) {
		return c.appendToSegment(nil, e, d)
	})
	if err != nil {
		return nil, err
	}
	if place != nil && s.follow(place) {
		if frame, ok := place.Frame(); ok {
			return frame, nil
		}
	}
	frame, err := c.Event(e)
	if place != nil && s.segment != nil && c.encodesAlike() && c.entersHistory(frame) {
		// The segment's own frame was dropped. This frame has the same text, so the next frame of
		// the segment may follow it.
		return frame, err
	}
	s.segment = nil
	return frame, err
}

// BeforeSegment returns the frame of e, an event that only this stream receives, such as a
// bookmark. The frame must be sent before the frame that Event returned last. The latter must be
// the first frame of a segment; see StartsSegment.
func (s *StreamEncoder) BeforeSegment(e listwatch.Event) ([]byte, error) {
	return s.privateEncoder().Event(e)
}

// privateEncoder returns the Encoder for data that no other stream receives. Such data stays out of
// the client's history if the transport permits that.
func (s *StreamEncoder) privateEncoder() *Encoder {
	if h := s.encoder.envelope.History; h != nil && s.segmentation != nil {
		return s.encoder.WithEnvelope(h.Private)
	}
	return s.encoder
}

// private returns its arguments. If frame enters the client's history, no frame of the current
// segment can follow, because frame does not belong to the segment.
func (s *StreamEncoder) private(frame []byte, err error) ([]byte, error) {
	if s.segmentation != nil && len(frame) > 0 && s.encoder.entersHistory(frame) {
		s.segment = nil
	}
	return frame, err
}

// Error is [Encoder.Error].
func (s *StreamEncoder) Error(err error) ([]byte, error) {
	return s.private(s.privateEncoder().Error(err))
}

// Opening is [Encoder.Opening].
func (s *StreamEncoder) Opening() []byte {
	frame, _ := s.private(s.privateEncoder().Opening(), nil)
	return frame
}

// Heartbeat is [Encoder.Heartbeat].
func (s *StreamEncoder) Heartbeat(at listwatch.Version) []byte {
	frame, _ := s.private(s.privateEncoder().Heartbeat(at), nil)
	return frame
}

// follow reports whether s may send the frame of place. It may if the frame is the first one of a
// segment, or the next one of the segment that s is in. In these cases follow moves s past the
// frame. Otherwise s leaves its segment and waits for the next one.
func (s *StreamEncoder) follow(place *framecache.Place) bool {
	if place.Index > 0 && (place.Segment != s.segment || place.Index != s.next) {
		if s.segment = nil; place.Segment.Continues(place.Index+1, time.Now()) {
			s.sequence.Wait()
		}
		return false
	}
	s.segment, s.next = place.Segment, place.Index+1
	return true
}

// join makes s a user of the segments of f.
func (s *StreamEncoder) join(f *framecache.Feed) {
	if f != s.feed {
		s.Close()
		s.feed, s.sequence = f, f.Join(s.encoder.form)
	}
}

// WireSize is [Encoder.WireSize].
func (s *StreamEncoder) WireSize(frame []byte) int { return s.encoder.WireSize(frame) }

// StartsSegment reports whether the frame that Event returned last is the first one of a segment.
// Before such a frame, the stream can send data that only it receives, such as a bookmark, without
// leaving a segment; see BeforeSegment.
func (s *StreamEncoder) StartsSegment() bool {
	return s.segmentation != nil && s.segment != nil && s.next == 1
}

// InSegment reports whether the next frame will probably refer to the frames before it. If so, data
// that only this stream receives, such as a bookmark, would make the stream leave its segment.
// InSegment is false if such data bypasses the history.
func (s *StreamEncoder) InSegment(now time.Time) bool {
	return s.segmentation != nil && s.segment != nil && s.encoder.envelope.History == nil && s.segment.Continues(s.next, now)
}

// Close releases the resources of s. Calling it again has no effect.
func (s *StreamEncoder) Close() {
	if s.segmentation == nil {
		return
	}
	if s.sequence != nil {
		s.sequence.Leave()
	}
	s.feed, s.sequence, s.segment = nil, nil, nil
}
