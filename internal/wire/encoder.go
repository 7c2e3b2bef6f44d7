// Package wire encodes the events of streams. A [transport.Encoder] defines how a stream's bytes
// look; this package adds the representation of objects, shares frames between streams, and keeps
// track of the segments that a stream may send.
//
// Package [frames] holds the caches, which internal/history attaches to its records, so that a log
// does not depend on framings and compression.
package wire

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/wire/frames"
	"github.com/listwatch/listwatch/transport"
)

// A StreamEncoder encodes the events of one stream. Its frames must be sent in the order in which
// they were encoded, and must not be modified, because other streams share them. A StreamEncoder is
// not safe for concurrent use.
//
// The decompressor of a client keeps the last 32 KiB of text as its history. A frame of a segment
// refers to the text of the earlier events of its segment. So the stream may send the frame only
// directly after exactly this text, without other text in between. The StreamEncoder keeps track of
// that. In all other cases it uses frames that do not refer to earlier text.
type StreamEncoder struct {
	form          frames.Form // the form of the next event
	later         frames.Form // the form of all events after the first
	*segmentation             // nil without segments, so that most StreamEncoders are small
}

// NewStreamEncoder returns a StreamEncoder for the frames of out. If r is not nil, it represents
// the objects. If s is not nil and out permits it, segments are used. Close must be called after
// the last event.
func NewStreamEncoder(out *transport.Stream, r transport.Representation, s *frames.Segmenter) StreamEncoder {
	f := form{out.Encoder, r}
	e := StreamEncoder{form: f.handle()}
	if e.later = e.form; r != nil {
		e.later = f.afterFirst().handle()
	}
	if out.Segments && s != nil && f.SharesHistory() {
		e.segmentation = &segmentation{segmenter: s}
	}
	return e
}

// Encode returns the frame of ev. ref refers to the caches of ev.
func (e *StreamEncoder) Encode(ev listwatch.Event, ref frames.Ref) ([]byte, error) {
	h, first := e.form, e.form != e.later
	e.form = e.later
	if e.segmentation == nil {
		return cached(h, ev, ref.Frames)
	}
	f := formOf(h)
	switch {
	case ev.Type == listwatch.Bookmark || ev.Type == listwatch.Synced:
		frame, err := f.private().build(ev)
		return e.interrupt(f, frame), err
	case ref.Node == nil || first:
		frame, err := cached(h, ev, ref.Frames)
		return e.interrupt(f, frame), err
	}
	return e.next(h, ev, ref)
}

// CompressesInitialBlocks reports whether initial events must be encoded with AppendInitial and
// BlockFrame instead of Encode.
func (e *StreamEncoder) CompressesInitialBlocks() bool {
	return formOf(e.form).CompressesInitialBlocks()
}

// AppendInitial appends the text of ev, an initial event, to a block. ref refers to the caches of
// ev.
func (e *StreamEncoder) AppendInitial(block []byte, ev listwatch.Event, ref frames.Ref) ([]byte, error) {
	f := formOf(e.form)
	e.form = e.later
	if f.representation == nil {
		return f.AppendText(block, f.represent(ev))
	}
	// A representation costs more than a copy of its result.
	text, err := cached(f.uncompressed().handle(), ev, ref.Frames)
	return append(block, text...), err
}

// BlockFrame returns the frame of a block, which c compresses.
func (e *StreamEncoder) BlockFrame(block []byte, c *compress.BlockCache) []byte {
	return formOf(e.form).BlockFrame(c.Compress(block))
}

// BeforeSegment returns the frame of ev, an event that only this stream receives, such as a
// bookmark. The frame must be sent before the frame that Encode returned last. That last frame must
// be the first one of a segment; see StartsSegment.
func (e *StreamEncoder) BeforeSegment(ev listwatch.Event) ([]byte, error) {
	return formOf(e.form).private().build(ev)
}

// Error returns the frame of the ERROR event that reports err.
func (e *StreamEncoder) Error(err error) ([]byte, error) {
	return e.private(func(c transport.Encoder) ([]byte, error) { return c.Frame(framing.FromError(err)) })
}

// Opening returns the frame that the framing requires at the start of a stream. It may be nil.
func (e *StreamEncoder) Opening() []byte {
	frame, _ := e.private(func(c transport.Encoder) ([]byte, error) { return c.Opening(), nil })
	return frame
}

// Heartbeat returns the frame of a heartbeat, or nil if the framing has none. The client may resume
// from the given version. The version is zero if none is known.
func (e *StreamEncoder) Heartbeat(at listwatch.Version) []byte {
	frame, _ := e.private(func(c transport.Encoder) ([]byte, error) { return c.Heartbeat(at), nil })
	return frame
}

// private returns the result of encode, a frame that no other stream receives.
func (e *StreamEncoder) private(encode func(transport.Encoder) ([]byte, error)) ([]byte, error) {
	f := formOf(e.form)
	if e.segmentation == nil {
		return encode(f.Encoder)
	}
	frame, err := encode(f.private().Encoder)
	return e.interrupt(f, frame), err
}

// WireSize returns the number of bytes that a frame of e takes on the wire.
func (e *StreamEncoder) WireSize(frame []byte) int { return formOf(e.form).WireSize(frame) }

// StartsSegment reports whether the frame that Encode returned last is the first one of a segment.
// Before such a frame, the stream can send data that only it receives, such as a bookmark, without
// leaving a segment; see BeforeSegment.
func (e *StreamEncoder) StartsSegment() bool {
	return e.segmentation != nil && e.segment != nil && e.index == 1
}

// InSegment reports whether the next frame will probably refer to the frames before it. If so, data
// that only this stream receives, such as a bookmark, would make the stream leave its segment.
// InSegment is false if such data bypasses the history.
func (e *StreamEncoder) InSegment(now time.Time) bool {
	return e.segmentation != nil && e.segment != nil &&
		formOf(e.form).History() == nil && e.segment.Continues(e.index, now)
}

// Close releases the resources of e. Calling it again has no effect.
func (e *StreamEncoder) Close() {
	if e.segmentation != nil {
		e.leave()
	}
}
