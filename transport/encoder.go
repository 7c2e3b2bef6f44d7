package transport

import (
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/framecache"
)

// An Envelope is what a transport puts around each event. Each transport has one or a few, as package variables: their
// identity, with that of the framer, names the wire form that watchers share.
type Envelope struct {
	// Messages is true where one event is one message: the framer's message form is used.
	Messages bool
	// Wrap appends payload and what belongs around it to dst. binary is the framer's Binary. nil: the payload alone.
	Wrap func(dst, payload []byte, binary bool) []byte
	// Compression is the name of the compression that Wrap does; empty: none.
	Compression string
}

// An Encoder turns events into the frames of one wire form: a framer, a content coding, an envelope, and the shape in which objects are
// shown. Its frames are for the Sender of a stream that was accepted with it. It is safe for concurrent use.
type Encoder struct {
	// Framer is the framing.
	Framer framing.Framer

	coding   *contentCoding // nil: none
	envelope *Envelope
	messages framing.MessageFramer // not nil where envelope.Messages
	shape    Representation        // nil: objects as they are
	rest     *Encoder              // of all events but the first of a stream; often the Encoder itself
	form     framecache.Form
}

type encoderKey struct {
	framer   framing.Framer
	coding   *contentCoding
	envelope *Envelope
	shape    Representation
}

// encoders keeps one Encoder for each wire form of the process: a form is given out once.
var encoders sync.Map // encoderKey → *Encoder

// EncoderFor returns the Encoder of a framer and an envelope. It is an error of code Unsupported where the envelope wants messages
// and the framer has none.
func EncoderFor(f framing.Framer, envelope *Envelope) (*Encoder, error) {
	if _, ok := f.(framing.MessageFramer); envelope.Messages && !ok {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Message: f.MediaType() + " has no message form"}
	}
	return encoderOf(encoderKey{framer: f, envelope: envelope}), nil
}

func encoderOf(key encoderKey) *Encoder {
	if c, ok := encoders.Load(key); ok {
		return c.(*Encoder)
	}
	c := &Encoder{Framer: key.framer, coding: key.coding, envelope: key.envelope, shape: key.shape, form: framecache.NewForm()}
	if key.envelope.Messages {
		c.messages = key.framer.(framing.MessageFramer)
	}
	c.rest = c
	if c.shape != nil && c.shape.AfterFirst() != c.shape {
		key.shape = c.shape.AfterFirst()
		c.rest = encoderOf(key)
	}
	kept, _ := encoders.LoadOrStore(c.key(), c)
	return kept.(*Encoder)
}

func (c *Encoder) key() encoderKey { return encoderKey{c.Framer, c.coding, c.envelope, c.shape} }

// As returns the Encoder that is as c, but shows objects in another shape; nil: as they are.
func (c *Encoder) WithRepresentation(shape Representation) *Encoder {
	key := c.key()
	key.shape = shape
	return encoderOf(key)
}

// In returns the Encoder that is as c, but has another envelope, of messages where the one of c is.
func (c *Encoder) WithEnvelope(envelope *Envelope) *Encoder {
	key := c.key()
	key.envelope = envelope
	return encoderOf(key)
}

// in returns the Encoder that is as c, but has another content coding; nil: none.
func (c *Encoder) in(coding *contentCoding) *Encoder {
	key := c.key()
	key.coding = coding
	return encoderOf(key)
}

// Compression returns what frames are compressed with, the name of a content coding or of an extension; empty: nothing.
func (c *Encoder) Compression() string {
	if c.coding != nil {
		return c.coding.name
	}
	return c.envelope.Compression
}

// Rest returns the Encoder for what comes behind the first event of a stream that began with c. It is c itself unless c has a
// [Representation] that says more in the first event.
func (c *Encoder) AfterFirst() *Encoder { return c.rest }

// Event returns the frame of e, shared with every stream of this form.
func (c *Encoder) Event(e listwatch.Event) ([]byte, error) {
	if e.Initial && c.shape != nil && c.shape.DependsOnTime() {
		// The frames of an initial event are kept for as long as its object lives, which may be for days.
		return c.appendEvent(nil, e)
	}
	frames := e.Frames()
	if frame, ok := frames.Get(c.form); ok {
		return frame, nil
	}
	return frames.GetOrBuild(c.form, func() ([]byte, error) { return c.appendEvent(nil, e) })
}

// Error returns the frame of the ERROR event that says err.
func (c *Encoder) Error(err error) ([]byte, error) { return c.append(nil, framing.FromError(err)) }

// Opening returns what a stream begins with; nil where that is nothing.
func (c *Encoder) Opening() []byte {
	if p, ok := c.Framer.(framing.Heartbeater); ok {
		return c.wrap(nil, p.AppendOpening(nil))
	}
	return nil
}

// Heartbeat returns what shows that an idle stream lives; nil where the framing has nothing. at is where the client may resume;
// zero: not said.
func (c *Encoder) Heartbeat(at listwatch.Version) []byte {
	if p, ok := c.Framer.(framing.Heartbeater); ok {
		return c.wrap(nil, p.AppendHeartbeat(nil, at))
	}
	return nil
}

func (c *Encoder) appendEvent(dst []byte, e listwatch.Event) ([]byte, error) {
	w := framing.FromEvent(e)
	if c.shape != nil {
		w.Object = c.shape.AppendObject(make([]byte, 0, len(w.Object)+256), e)
	}
	return c.append(dst, w)
}

func (c *Encoder) append(dst []byte, e framing.WatchEvent) ([]byte, error) {
	encode := c.Framer.AppendEvent
	if c.messages != nil {
		encode = c.messages.AppendMessage
	}
	if c.coding == nil && c.envelope.Wrap == nil {
		return encode(dst, e)
	}
	payload, err := encode(make([]byte, 0, len(e.Object)+128), e)
	if err != nil {
		return nil, err
	}
	return c.wrap(dst, payload), nil
}

// wrap appends payload as a frame: compressed, and in the envelope.
func (c *Encoder) wrap(dst, payload []byte) []byte {
	if len(payload) == 0 {
		return dst
	}
	if c.summed() {
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
	return c.envelope.Wrap(dst, payload, c.messages != nil && c.messages.Binary())
}

func (c *Encoder) summed() bool { return c.coding != nil && c.coding.summed }

// Size returns how many bytes of frame, which c has made, go out.
func (c *Encoder) WireSize(frame []byte) int {
	if c.summed() {
		return len(frame) - compress.ChecksumSize
	}
	return len(frame)
}
