package protoencoding

import (
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// Framing sends each event as a [ReadingEvent], after its length unless it is a message of a
// WebSocket.
type Framing struct{}

var (
	_ framing.EncodedFramer     = Framing{}
	_ framing.SubprotocolFramer = Framing{}
)

// MediaType implements [framing.Framer].
func (Framing) MediaType() string { return mediaType }

// Subprotocol implements [framing.SubprotocolFramer].
func (Framing) Subprotocol() string { return "readings.example.com" }

// Encoding implements [framing.EncodedFramer].
func (Framing) Encoding() listwatch.Encoding { return Encoding{} }

// Binary implements [framing.MessageFramer].
func (Framing) Binary() bool { return true }

// AppendMessage implements [framing.MessageFramer].
func (Framing) AppendMessage(dst []byte, e framing.WatchEvent) ([]byte, error) {
	m := &ReadingEvent{Type: e.Type}
	switch isText := len(e.Object) > 0 && e.Object[0] == '{'; {
	case !isText:
		m.Reading = e.Object
	case e.Type == listwatch.Deleted.String():
		// A difference contains only the keys of the deleted objects.
		o, err := listwatch.ParseObject(e.Object)
		if err != nil {
			return dst, err
		}
		m.Reading = marshal(&Reading{Room: o.Key.Namespace, Sensor: o.Key.Name, Version: uint64(o.Version)})
	default:
		m.Text = e.Object
	}
	return marshaler.MarshalAppend(dst, m)
}

// AppendEvent implements [framing.Framer].
func (f Framing) AppendEvent(dst []byte, e framing.WatchEvent) ([]byte, error) {
	return framing.AppendPrefixed(dst, e, f.AppendMessage)
}

// DecodeMessage implements [framing.MessageFramer].
func (Framing) DecodeMessage(message []byte) (framing.WatchEvent, error) {
	var m ReadingEvent
	if err := proto.Unmarshal(message, &m); err != nil {
		return framing.WatchEvent{}, corrupt("the event is malformed", err)
	}
	object := m.GetReading()
	if m.Text != nil {
		object = m.GetText()
	}
	if m.GetType() == "" || len(object) == 0 {
		return framing.WatchEvent{}, corrupt("the event has no type or no object", nil)
	}
	return framing.WatchEvent{Type: m.GetType(), Object: object}, nil
}

// NewDecoder implements [framing.Framer].
func (f Framing) NewDecoder(r io.Reader, limit int) framing.Decoder {
	return framing.NewPrefixedDecoder(r, limit, f.DecodeMessage)
}
