// Package framing encodes and decodes streams of watch events. Each framing has a file with its
// encoder and its decoder.
//
// Encoders are stateless and append to a buffer. Decoders limit the size of an event, and
// distinguish a stream that ended within an event from one that ended between two events. Start
// with [Framer].
package framing

import (
	"cmp"
	"fmt"
	"io"
	"strconv"

	"github.com/listwatch/listwatch"
)

// A Framer encodes a stream of events, and returns decoders for such streams. It must be stateless,
// safe for concurrent use, and comparable, so that it can be a map key. The zero value of each
// Framer of this package is ready to use.
type Framer interface {
	// MediaType returns the media type of a stream, for Content-Type and Accept.
	MediaType() string
	// AppendEvent appends one complete event to dst. The concatenation of events is a stream.
	AppendEvent(dst []byte, e WatchEvent) ([]byte, error)
	// NewDecoder returns a Decoder for the stream r. limit is the maximum number of bytes of one
	// event on the wire; zero or a negative value means [DefaultLimit]. The Decoder rejects a
	// larger event before it allocates memory for that event.
	NewDecoder(r io.Reader, limit int) Decoder
}

// A Decoder reads the events of one stream. It is not safe for concurrent use.
type Decoder interface {
	// Decode returns the next event, whose bytes belong to the caller. At the end of the stream the
	// error is [io.EOF]. If the stream is invalid, or ended within an event, the error is a
	// *listwatch.Error of code Corrupt. If the stream ended within an event, this error wraps
	// [io.ErrUnexpectedEOF]. Other errors of the reader are returned unchanged. After an error,
	// Decode returns the same error again.
	Decode() (WatchEvent, error)
}

// A MessageFramer can also encode an event as one message, for transports that delimit messages
// themselves.
type MessageFramer interface {
	Framer
	// AppendMessage appends the message without a delimiter or a length.
	AppendMessage(dst []byte, e WatchEvent) ([]byte, error)
	// DecodeMessage decodes one message and does not keep it. The caller must limit its size.
	DecodeMessage(message []byte) (WatchEvent, error)
	// Binary reports whether messages are binary. Otherwise they are UTF-8 text.
	Binary() bool
}

// A SubprotocolFramer is a [MessageFramer] that clients can request by the name of a WebSocket
// subprotocol. Browsers need that, because they cannot set the Accept header of a WebSocket.
type SubprotocolFramer interface {
	MessageFramer
	// Subprotocol returns the name, which must be a token (RFC 9110 5.6.2). The name "v1" is
	// reserved for clients that accept any framing. Choose a name that includes a version, such as
	// "example.v1.msgpack". If the name is empty, the framing has no subprotocol.
	Subprotocol() string
}

// SubprotocolOf returns the WebSocket subprotocol of f, or "" if f has none.
func SubprotocolOf(f Framer) string {
	if s, ok := f.(SubprotocolFramer); ok {
		return s.Subprotocol()
	}
	return ""
}

// A Heartbeater is a Framer whose streams may contain bytes that are not events.
type Heartbeater interface {
	// AppendOpening appends the bytes at the start of a stream.
	AppendOpening(dst []byte) []byte
	// AppendHeartbeat appends the bytes that are sent on an idle stream to show that it is alive.
	// at is a version that the client may resume from, or zero if no such version is known.
	AppendHeartbeat(dst []byte, at listwatch.Version) []byte
}

// A Positioner is a [Decoder], or a transport.Receiver, of a framing that transmits the
// position of the stream next to the events, and possibly between them.
type Positioner interface {
	// LastEventID returns the value that a client should send as Last-Event-ID after the last
	// event or heartbeat. It is empty if the stream has not sent a position. Only the reader of
	// the stream may call it.
	LastEventID() string
}

// A Buffered is a [Decoder], or a transport.Receiver, that can return events without waiting.
type Buffered interface {
	// Buffered returns the next event if it has arrived completely. Otherwise ok is false, and the
	// next call of Decode or Receive waits for the event, or returns an error. Only the reader of
	// the stream may call Buffered.
	Buffered() (e WatchEvent, ok bool)
}

// DefaultLimit is the default maximum size of one event in bytes. It is larger than the largest
// object of etcd.
const DefaultLimit = 16 << 20

// LimitOrDefault returns limit, or [DefaultLimit] if limit is zero or negative.
func LimitOrDefault(limit int) int { return cmp.Or(max(limit, 0), DefaultLimit) }

// corrupt returns the error for an event that violates the protocol.
func corrupt(message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "decode event", Message: message, Err: cause}
}

// encodeError returns the error for an event that a framing cannot encode.
func encodeError(code listwatch.Code, message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: code, Op: "encode event", Message: message, Err: cause}
}

// truncated returns the error for a stream that ended within an event.
func truncated() *listwatch.Error {
	return corrupt("the stream ended within an event", io.ErrUnexpectedEOF)
}

func tooLarge(limit int) *listwatch.Error {
	return corrupt(fmt.Sprintf("the event is larger than the limit of %d bytes", limit), nil)
}

// excerpt returns the beginning of data, quoted, for an error message.
func excerpt(data []byte) string {
	const most = 64
	if len(data) > most {
		return strconv.Quote(string(data[:most])) + "…"
	}
	return strconv.Quote(string(data))
}
