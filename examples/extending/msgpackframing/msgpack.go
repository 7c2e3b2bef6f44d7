// Package msgpackframing frames events in MessagePack. An event is an array of two elements: the
// type as a string, and the object as binary data. The object remains JSON, because MessagePack
// would lose the spelling of numbers.
package msgpackframing

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/vmihailenco/msgpack/v5"
)

// A Framer is a [framing.SubprotocolFramer], so it also works over WebSocket, and a page can
// request it there: new WebSocket(url, "example.v1.msgpack").
type Framer struct{}

var _ framing.SubprotocolFramer = Framer{}

// MediaType implements [framing.Framer].
func (Framer) MediaType() string { return "application/vnd.msgpack" }

// AppendEvent implements [framing.Framer].
func (Framer) AppendEvent(dst []byte, e framing.WatchEvent) ([]byte, error) {
	var b bytes.Buffer
	enc := msgpack.NewEncoder(&b)
	if err := errors.Join(enc.EncodeArrayLen(2), enc.EncodeString(e.Type), enc.EncodeBytes(e.Object)); err != nil {
		return dst, &listwatch.Error{Code: listwatch.Invalid, Op: "encode event", Err: err}
	}
	return append(dst, b.Bytes()...), nil
}

// AppendMessage implements [framing.MessageFramer]. MessagePack needs no delimiter, so a message
// is the same as an event of a stream.
func (f Framer) AppendMessage(dst []byte, e framing.WatchEvent) ([]byte, error) {
	return f.AppendEvent(dst, e)
}

// Binary implements [framing.MessageFramer].
func (Framer) Binary() bool { return true }

// Subprotocol implements [framing.SubprotocolFramer].
func (Framer) Subprotocol() string { return "example.v1.msgpack" }

// DecodeMessage implements [framing.MessageFramer].
func (f Framer) DecodeMessage(message []byte) (framing.WatchEvent, error) {
	d := f.NewDecoder(bytes.NewReader(message), len(message))
	e, err := d.Decode()
	if err != nil {
		return e, truncated(err)
	}
	if _, err := d.Decode(); !errors.Is(err, io.EOF) {
		return framing.WatchEvent{}, corrupt("data after the event of a message", nil)
	}
	return e, nil
}

// NewDecoder implements [framing.Framer].
func (Framer) NewDecoder(r io.Reader, limit int) framing.Decoder {
	source := &errorReader{r: r}
	return &decoder{source: source, input: msgpack.NewDecoder(source), limit: framing.LimitOrDefault(limit)}
}

type decoder struct {
	source *errorReader
	input  *msgpack.Decoder
	limit  int
	left   int   // the bytes that the current event may still have
	err    error // returned by every further Decode
}

// Decode implements [framing.Decoder].
func (d *decoder) Decode() (e framing.WatchEvent, err error) {
	if d.err == nil {
		e, d.err = d.decode()
	}
	if d.err != nil {
		return framing.WatchEvent{}, d.err
	}
	return e, nil
}

func (d *decoder) decode() (e framing.WatchEvent, err error) {
	n, err := d.input.DecodeArrayLen()
	switch {
	case d.source.err != nil:
		return e, d.source.err
	case errors.Is(err, io.EOF):
		return e, io.EOF // the stream ended between two events
	case err != nil:
		return e, corrupt("want an array", err)
	case n != 2:
		return e, corrupt("want an array of two elements", nil)
	}
	d.left = d.limit
	name, err := d.bytes()
	if err != nil {
		return e, d.within(err)
	}
	object, err := d.bytes()
	if err != nil {
		return e, d.within(err)
	}
	// The object must be compact JSON.
	var compact bytes.Buffer
	if err := json.Compact(&compact, object); err != nil || compact.Bytes()[0] != '{' {
		return e, corrupt("the object is not a JSON object", err)
	}
	return framing.WatchEvent{Type: string(name), Object: compact.Bytes()}, nil
}

// bytes reads a string or binary data.
func (d *decoder) bytes() ([]byte, error) {
	n, err := d.input.DecodeBytesLen()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > d.left { // check before the allocation
		return nil, corrupt("an event exceeds the limit", nil)
	}
	d.left -= n
	b := make([]byte, n)
	return b, d.input.ReadFull(b)
}

// within returns the error for a stream that failed within an event: the error of the source if
// there was one, and otherwise err, converted to an error of code Corrupt.
func (d *decoder) within(err error) error {
	if d.source.err != nil {
		return d.source.err
	}
	return truncated(err)
}

// truncated converts err to an error of code Corrupt. It replaces io.EOF with io.ErrUnexpectedEOF,
// because the data ended within an event.
func truncated(err error) error {
	if errors.Is(err, listwatch.Corrupt) {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return corrupt("the event is incomplete", err)
}

func corrupt(message string, cause error) error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "decode event", Message: message, Err: cause}
}

// An errorReader remembers the error of its reader, because a Decoder must return this error
// unchanged.
type errorReader struct {
	r   io.Reader
	err error // nil at the end of the data
}

func (r *errorReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
