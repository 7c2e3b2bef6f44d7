package kubeproto

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// Framing is the framing of Kubernetes' watches in Protocol Buffers: each event is a
// metav1.WatchEvent after its length in four bytes. Over WebSocket, a message has no length.
type Framing struct{}

var (
	_ framing.MessageFramer = Framing{}
	_ framing.EncodedFramer = Framing{}
	_ framing.StatusDecoder = Framing{}
)

// The fields of metav1.WatchEvent and of runtime.RawExtension.
const eventTypeField, eventObjectField, extensionField = 1, 2, 1

// WithFraming returns a Registry of framers and Framing, for a server of collections in JSON and of
// collections in Protocol Buffers. It panics if framers contains two of one media type.
func WithFraming(framers ...framing.Framer) *framing.Registry {
	r, err := framing.NewRegistry(append(slices.Clip(framers), Framing{})...)
	if err != nil {
		panic("kubeproto: " + err.Error())
	}
	return r
}

// MediaType implements [framing.Framer]. It is the media type of lists and objects, too.
func (Framing) MediaType() string { return Encoding{}.MediaType() }

// ContentType returns the Content-Type of a stream; see [framing.ContentTypeOf].
func (Framing) ContentType() string { return Encoding{}.MediaType() + ";stream=watch" }

// Encoding implements [framing.EncodedFramer].
func (Framing) Encoding() listwatch.Encoding { return Encoding{} }

// Binary implements [framing.MessageFramer].
func (Framing) Binary() bool { return true }

// AppendEvent implements [framing.Framer].
func (f Framing) AppendEvent(dst []byte, e framing.WatchEvent) ([]byte, error) {
	return framing.AppendPrefixed(dst, e, f.AppendMessage)
}

// AppendMessage implements [framing.MessageFramer].
func (Framing) AppendMessage(dst []byte, e framing.WatchEvent) ([]byte, error) {
	data := e.Object
	if bytes.HasPrefix(data, []byte{'{'}) {
		var err error
		if data, err = fromJSON(data); err != nil {
			return dst, encodeError("the object", err)
		}
	}
	switch {
	case e.Type == "":
		return dst, encodeError("the event has no type", nil)
	case !bytes.HasPrefix(data, []byte(prefix)):
		return dst, encodeError("the object is not in "+Encoding{}.MediaType(), nil)
	case len(data) > math.MaxInt32:
		return dst, encodeError("the object has 2 GiB or more", nil)
	}
	dst = appendBytes(dst, eventTypeField, e.Type)
	dst = appendLength(dst, eventObjectField, protowire.SizeTag(extensionField)+protowire.SizeBytes(len(data)))
	return appendBytes(dst, extensionField, data), nil
}

func encodeError(message string, cause error) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: "encode event", Message: message, Err: cause}
}

// NewDecoder implements [framing.Framer].
func (Framing) NewDecoder(r io.Reader, limit int) framing.Decoder {
	return framing.NewPrefixedDecoder(r, limit, decode)
}

// DecodeMessage implements [framing.MessageFramer].
func (Framing) DecodeMessage(message []byte) (framing.WatchEvent, error) {
	return decode(bytes.Clone(message))
}

// decode decodes a message. The object of the event is a part of it.
func decode(message []byte) (framing.WatchEvent, error) {
	e, err := decodeEvent(message)
	if err != nil {
		err = &listwatch.Error{Code: listwatch.Corrupt, Op: "decode event", Message: "the event", Err: err}
		return framing.WatchEvent{}, err
	}
	return e, nil
}

func decodeEvent(message []byte) (e framing.WatchEvent, err error) {
	var eventType, extension, data field
	for f, err := range fields(message) {
		if err == nil && f.number == eventTypeField {
			err = eventType.set(f)
		} else if err == nil && f.number == eventObjectField {
			err = extension.set(f)
		}
		if err != nil {
			return e, err
		}
	}
	for f, err := range fields(extension.value) {
		if err == nil && f.number == extensionField {
			err = data.set(f)
		}
		if err != nil {
			return e, err
		}
	}
	if len(eventType.value) == 0 || len(data.value) == 0 {
		return e, errors.New("the type or the object is missing")
	}
	e.Type = typeName(eventType.value)
	// The capacity excludes the rest of the message, because a pool that reuses the memory of the
	// object may write to all of it.
	e.Object = data.value[:len(data.value):len(data.value)]
	if e.Type == framing.TypeError || e.Type == listwatch.Bookmark.String() {
		e.Object, err = toJSON(e.Object)
	}
	return e, err
}

// typeName returns an event type as a string, without an allocation if it is known.
func typeName(name []byte) string {
	for t := listwatch.Added; t <= listwatch.Bookmark; t++ {
		if s := t.String(); s == string(name) {
			return s
		}
	}
	return string(name)
}

// DecodeStatus implements [framing.StatusDecoder].
func (Framing) DecodeStatus(body []byte) ([]byte, error) { return toJSON(body) }
