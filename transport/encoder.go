package transport

import (
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/framecache"
)

// An Envelope defines the bytes that a transport adds to each event. The pointer to it is
// part of the wire form: streams share frames only if they have the same *Envelope.
// Therefore a transport must keep its Envelopes in package variables.
type Envelope struct {
	// Messages is true if the transport sends each event as a message. The framer must then
	// be a [framing.MessageFramer].
	Messages bool
	// Wrap appends payload to dst, with the data of the transport around it. binary is the
	// result of the framer's Binary method. If Wrap is nil, the payload is sent without
	// additional data.
	Wrap func(dst, payload []byte, binary bool) []byte
	// Compression is the name of the compression that Wrap applies. It is empty if Wrap
	// does not compress.
	Compression string
	// History must be nil unless Wrap compresses with deflate, and clients can keep the text of all
	// compressed messages as the history of their decompressor. A transport with a History must set
	// [Stream.Segments] only for clients that do keep this text.
	History *MessageHistory
}

// A MessageHistory describes how messages enter the history of a client's decompressor, as with
// permessage-deflate (rfc7692#section-7.2.2). Its functions are safe for concurrent use.
type MessageHistory struct {
	// Wrap is like Envelope.Wrap, but its payload is already compressed: it consists of blocks of
	// deflate that end with an empty stored block. Wrap must mark the message as compressed.
	Wrap func(dst, blocks []byte, binary bool) []byte
	// Entered reports whether frame, a result of Envelope.Wrap, is marked as compressed. The text
	// of such a frame enters the history.
	Entered func(frame []byte) bool
	// Private is the envelope of messages that bypass the history. It is for data that only one
	// stream receives.
	Private *Envelope
}

// An Encoder encodes events as the frames of one wire form, which is the combination of a framer, a
// content coding, an envelope and a representation. There is only one Encoder for each wire form,
// and all streams of the wire form share its frames. The frames of the Encoder of a [Stream] must
// be sent by the Sender of that Stream. An Encoder is safe for concurrent use.
type Encoder struct {
	// Framer is the framing.
	Framer framing.Framer

	coding         *contentCoding // nil if frames have no content coding
	envelope       *Envelope
	messages       framing.MessageFramer // nil unless envelope.Messages is true
	representation Representation        // nil for unmodified objects
	afterFirst     *Encoder              // the result of AfterFirst
	form           framecache.Form
}

// A wireForm is the key of an Encoder in the map [encoders].
type wireForm struct {
	framer         framing.Framer
	coding         *contentCoding
	envelope       *Envelope
	representation Representation
}

// encoders holds the Encoder of each wire form that was ever used: wireForm → *Encoder.
var encoders sync.Map

// EncoderFor returns the Encoder for a framer and an envelope, without a content coding. It
// returns an error of code Unsupported if the envelope is for messages and f is not a
// [framing.MessageFramer].
func EncoderFor(f framing.Framer, envelope *Envelope) (*Encoder, error) {
	if _, ok := f.(framing.MessageFramer); envelope.Messages && !ok {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Message: f.MediaType() + " has no message form"}
	}
	return encoderOf(wireForm{framer: f, envelope: envelope}), nil
}

// encoderOf returns the only Encoder for a wire form.
func encoderOf(w wireForm) *Encoder {
	if c, ok := encoders.Load(w); ok {
		return c.(*Encoder)
	}
	c := &Encoder{Framer: w.framer, coding: w.coding, envelope: w.envelope, representation: w.representation, form: framecache.NewForm()}
	if w.envelope.Messages {
		c.messages = w.framer.(framing.MessageFramer)
	}
	c.afterFirst = c
	if r := w.representation; r != nil && r.AfterFirst() != r {
		w.representation = r.AfterFirst()
		c.afterFirst = encoderOf(w)
	}
	kept, _ := encoders.LoadOrStore(c.wireForm(), c)
	return kept.(*Encoder)
}

func (c *Encoder) wireForm() wireForm {
	return wireForm{c.Framer, c.coding, c.envelope, c.representation}
}

// WithRepresentation returns the Encoder that differs from c only in the representation. If
// r is nil, objects are unmodified.
func (c *Encoder) WithRepresentation(r Representation) *Encoder {
	w := c.wireForm()
	w.representation = r
	return encoderOf(w)
}

// WithEnvelope returns the Encoder that differs from c only in the envelope. Both envelopes must
// have the same value of Messages.
func (c *Encoder) WithEnvelope(envelope *Envelope) *Encoder {
	w := c.wireForm()
	w.envelope = envelope
	return encoderOf(w)
}

// withCoding returns the Encoder that differs from c only in the content coding. If coding
// is nil, frames are not compressed.
func (c *Encoder) withCoding(coding *contentCoding) *Encoder {
	w := c.wireForm()
	w.coding = coding
	return encoderOf(w)
}

// Compression returns the name of the content coding or WebSocket extension that compresses the
// frames. It is empty if they are not compressed.
func (c *Encoder) Compression() string {
	if c.coding != nil {
		return c.coding.name
	}
	return c.envelope.Compression
}

// AfterFirst returns the Encoder for all events after the first event of a stream. It is c
// itself, unless the [Representation] of c differs for the first event.
func (c *Encoder) AfterFirst() *Encoder { return c.afterFirst }

// Event returns the frame of e. All streams of this wire form share the frame, so it must
// not be modified. Package framecache describes how frames are cached.
func (c *Encoder) Event(e listwatch.Event) ([]byte, error) {
	if e.Initial && c.representation != nil && c.representation.DependsOnTime() {
		// Do not cache the frame. The object would keep it until the object is replaced, so
		// watchers could receive a frame that is days out of date.
		return c.appendEvent(nil, e)
	}
	frames := e.Frames()
	if frame, ok := frames.Get(c.form); ok {
		return frame, nil
	}
	return frames.GetOrBuild(c.form, func() ([]byte, error) { return c.appendEvent(nil, e) })
}

// Error returns the frame for the ERROR event that reports err.
func (c *Encoder) Error(err error) ([]byte, error) { return c.append(nil, framing.FromError(err)) }

// Opening returns the bytes that the framing requires at the start of a stream. It may be
// nil.
func (c *Encoder) Opening() []byte {
	if p, ok := c.Framer.(framing.Heartbeater); ok {
		return c.wrap(nil, p.AppendOpening(nil))
	}
	return nil
}

// Heartbeat returns the frame of a heartbeat, or nil if the framing has none. The client may resume
// from the given version. The version is zero if none is known.
func (c *Encoder) Heartbeat(at listwatch.Version) []byte {
	if p, ok := c.Framer.(framing.Heartbeater); ok {
		return c.wrap(nil, p.AppendHeartbeat(nil, at))
	}
	return nil
}

func (c *Encoder) appendEvent(dst []byte, e listwatch.Event) ([]byte, error) {
	return c.append(dst, c.represent(e))
}

func (c *Encoder) represent(e listwatch.Event) framing.WatchEvent {
	w := framing.FromEvent(e)
	if c.representation != nil {
		w.Object = c.representation.AppendObject(make([]byte, 0, len(w.Object)+256), e)
	}
	return w
}

// appendPayload appends the text of e in the framing of c.
func (c *Encoder) appendPayload(dst []byte, e framing.WatchEvent) ([]byte, error) {
	if c.messages != nil {
		return c.messages.AppendMessage(dst, e)
	}
	return c.Framer.AppendEvent(dst, e)
}

func (c *Encoder) append(dst []byte, e framing.WatchEvent) ([]byte, error) {
	if c.coding == nil && c.envelope.Wrap == nil {
		return c.appendPayload(dst, e)
	}
	payload, err := c.appendPayload(make([]byte, 0, len(e.Object)+128), e)
	if err != nil {
		return nil, err
	}
	return c.wrap(dst, payload), nil
}

// appendToSegment appends the frame of e to dst. It compresses the text with d, whose history holds
// the earlier events of the segment.
func (c *Encoder) appendToSegment(dst []byte, e listwatch.Event, d framecache.Compressor) ([]byte, error) {
	w := c.represent(e)
	payload, err := c.appendPayload(make([]byte, 0, len(w.Object)+128), w)
	if err != nil {
		return nil, err
	}
	if c.isChecksummed() {
		dst = compress.AppendChecksum(dst, payload)
	}
	if c.envelope.Wrap == nil {
		return d.AppendFlushed(dst, payload), nil
	}
	blocks := d.AppendFlushed(make([]byte, 0, len(payload)/4+64), payload)
	if h := c.envelope.History; h != nil {
		return h.Wrap(dst, blocks, c.isBinary()), nil
	}
	return c.envelop(dst, blocks), nil
}

// canShareHistory reports whether frames may refer to the text of earlier frames.
func (c *Encoder) canShareHistory() bool {
	return c.coding != nil && c.coding.sharesHistory || c.envelope.History != nil
}

// entersHistory reports whether the text of frame becomes part of the client's history.
func (c *Encoder) entersHistory(frame []byte) bool {
	return c.envelope.History == nil || c.envelope.History.Entered(frame)
}

// encodesAlike reports whether encoding an event again always results in the same text.
func (c *Encoder) encodesAlike() bool {
	return c.representation == nil || !c.representation.DependsOnTime()
}

// wrap appends payload as a frame, compressed and in the envelope.
func (c *Encoder) wrap(dst, payload []byte) []byte {
	if len(payload) == 0 {
		return dst
	}
	if c.isChecksummed() {
		dst = compress.AppendChecksum(dst, payload)
	}
	switch {
	case c.coding == nil:
	case c.envelope.Wrap == nil:
		return c.coding.compress(dst, payload)
	default:
		payload = c.coding.compress(make([]byte, 0, len(payload)), payload)
	}
	return c.envelop(dst, payload)
}

func (c *Encoder) envelop(dst, payload []byte) []byte {
	if c.envelope.Wrap == nil {
		return append(dst, payload...)
	}
	return c.envelope.Wrap(dst, payload, c.isBinary())
}

func (c *Encoder) isBinary() bool { return c.messages != nil && c.messages.Binary() }

func (c *Encoder) isChecksummed() bool { return c.coding != nil && c.coding.checksummed }

// WireSize returns the number of bytes that a frame of c takes on the wire.
func (c *Encoder) WireSize(frame []byte) int {
	if c.isChecksummed() {
		return len(frame) - compress.ChecksumSize
	}
	return len(frame)
}
