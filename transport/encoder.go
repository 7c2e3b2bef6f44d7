package transport

import (
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
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
	// Wrap is like Envelope.Wrap, but its payload is already compressed: it consists of deflate
	// blocks that end with an empty stored block. Wrap must mark the message as compressed.
	Wrap func(dst, blocks []byte, binary bool) []byte
	// Entered reports whether frame, a result of Envelope.Wrap, is marked as compressed. The text
	// of such a frame enters the history.
	Entered func(frame []byte) bool
	// Private is the envelope of messages that bypass the history. It is for data that only one
	// stream receives.
	Private *Envelope
}

// An Encoder makes the frames of a stream: it combines a framing, a content coding and the envelope
// of a transport. Its frames must be sent by the Sender of its [Stream]. An Encoder is immutable
// and comparable: equal Encoders make equal frames, which their streams can share. watchserver
// caches them.
type Encoder struct {
	// Framer is the framing.
	Framer framing.Framer

	coding   *contentCoding // nil if frames have no content coding
	envelope *Envelope
}

// EncoderFor returns the Encoder for a framer and an envelope, without a content coding. It
// returns an error of code Unsupported if the envelope is for messages and f is not a
// [framing.MessageFramer].
func EncoderFor(f framing.Framer, envelope *Envelope) (Encoder, error) {
	if _, ok := f.(framing.MessageFramer); envelope.Messages && !ok {
		return Encoder{}, &listwatch.Error{Code: listwatch.Unsupported, Message: f.MediaType() + " has no message form"}
	}
	return Encoder{Framer: f, envelope: envelope}, nil
}

// WithEnvelope returns a copy of e with another envelope. Both envelopes must have the same value
// of Messages.
func (e Encoder) WithEnvelope(envelope *Envelope) Encoder {
	e.envelope = envelope
	return e
}

// Compression returns the name of the content coding or WebSocket extension that compresses the
// frames. It is empty if they are not compressed.
func (e Encoder) Compression() string {
	if e.coding != nil {
		return e.coding.name
	}
	return e.envelope.Compression
}

// History returns the MessageHistory of the envelope, or nil if the envelope has none.
func (e Encoder) History() *MessageHistory { return e.envelope.History }

// SharesHistory reports whether a frame may refer to the text of earlier frames; see
// [Encoder.SegmentFrame].
func (e Encoder) SharesHistory() bool {
	return e.coding != nil && e.coding.sharesHistory || e.envelope.History != nil
}

// Frame returns the frame of w, an event or an error.
func (e Encoder) Frame(w framing.WatchEvent) ([]byte, error) {
	if e.coding == nil && e.envelope.Wrap == nil {
		return e.AppendText(nil, w)
	}
	text, err := e.text(w)
	if err != nil {
		return nil, err
	}
	return e.wrap(text), nil
}

// SegmentFrame is like [Encoder.Frame], but compresses with compress, whose results may refer to
// earlier text. compress must append deflate blocks that end with an empty stored block.
// SharesHistory must be true.
func (e Encoder) SegmentFrame(w framing.WatchEvent, compress func(dst, text []byte) []byte) ([]byte, error) {
	text, err := e.text(w)
	if err != nil {
		return nil, err
	}
	frame := e.coding.appendChecksum(nil, text)
	if e.envelope.Wrap == nil {
		return compress(frame, text), nil
	}
	blocks := compress(make([]byte, 0, len(text)/4+64), text)
	if h := e.envelope.History; h != nil {
		return h.Wrap(frame, blocks, e.isBinary()), nil
	}
	return e.envelop(frame, blocks), nil
}

// CompressesInitialBlocks reports whether initial events must be encoded with AppendText and
// BlockFrame; see [Options].InitialBlocks.
func (e Encoder) CompressesInitialBlocks() bool { return e.coding == initialBlocks }

// BlockFrame returns the frame of a block of text, the results of AppendText for one or more
// events. compressed is the compressed text, as deflate blocks that do not refer to earlier text
// and end with an empty stored block, after the checksum of the text.
func (e Encoder) BlockFrame(compressed []byte) []byte {
	if e.envelope.Wrap == nil {
		return compressed
	}
	return e.envelop(slices.Clone(compressed[:compress.ChecksumSize]), compressed[compress.ChecksumSize:])
}

// Opening returns the frame that the framing requires at the start of a stream. It may be nil.
func (e Encoder) Opening() []byte {
	if h, ok := e.Framer.(framing.Heartbeater); ok {
		return e.wrap(h.AppendOpening(nil))
	}
	return nil
}

// Heartbeat returns the frame of a heartbeat, or nil if the framing has none. The client may resume
// from the given version. The version is zero if none is known.
func (e Encoder) Heartbeat(at listwatch.Version) []byte {
	if h, ok := e.Framer.(framing.Heartbeater); ok {
		return e.wrap(h.AppendHeartbeat(nil, at))
	}
	return nil
}

// text returns w in the framing.
func (e Encoder) text(w framing.WatchEvent) ([]byte, error) {
	return e.AppendText(make([]byte, 0, len(w.Object)+128), w)
}

// AppendText appends w in the framing, without compression and envelope.
func (e Encoder) AppendText(dst []byte, w framing.WatchEvent) ([]byte, error) {
	if e.envelope.Messages {
		return e.Framer.(framing.MessageFramer).AppendMessage(dst, w)
	}
	return e.Framer.AppendEvent(dst, w)
}

// wrap returns text as a frame: compressed and in the envelope.
func (e Encoder) wrap(text []byte) []byte {
	switch {
	case len(text) == 0:
		return nil
	case e.coding == nil:
		return e.envelop(nil, text)
	}
	frame := e.coding.appendChecksum(nil, text)
	if e.envelope.Wrap == nil {
		return e.coding.compress(frame, text)
	}
	return e.envelop(frame, e.coding.compress(make([]byte, 0, len(text)), text))
}

func (e Encoder) envelop(dst, payload []byte) []byte {
	if e.envelope.Wrap == nil {
		return append(dst, payload...)
	}
	return e.envelope.Wrap(dst, payload, e.isBinary())
}

func (e Encoder) isBinary() bool {
	return e.envelope.Messages && e.Framer.(framing.MessageFramer).Binary()
}
