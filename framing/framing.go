// Package framing turns watch events into bytes and bytes into watch events: one file for each framing, both directions side by side.
//
// Encoders are stateless and append; decoders are bounded and tell a stream that was cut off from one that ended. Start at [Framer].
package framing

import (
	"io"

	"github.com/listwatch/listwatch"
)

// A Framer is one way to spell a stream of events in bytes. It is stateless, comparable (it can be a map key) and safe for
// concurrent use: the zero value of each type in this package is ready.
type Framer interface {
	// MediaType is the value of Content-Type, and what Accept must admit.
	MediaType() string
	// AppendEvent appends one event to dst, whole: the concatenation of events is a stream.
	AppendEvent(dst []byte, e WatchEvent) ([]byte, error)
	// NewDecoder returns a reader of a stream. limit is how many bytes one event may have on the wire, zero or negative means
	// [DefaultLimit]; an event beyond it is an error before memory for it is taken.
	NewDecoder(r io.Reader, limit int) Decoder
}

// A Decoder reads the events of one stream. It has one user at a time.
type Decoder interface {
	// Decode returns the next event; its bytes belong to the caller. The error is [io.EOF] where the stream ended between two
	// events, and otherwise a *listwatch.Error of code Corrupt: it wraps [io.ErrUnexpectedEOF] where the stream ended within
	// an event. An error of the reader that is not [io.EOF] is returned as it is. After an error the Decoder is done.
	Decode() (WatchEvent, error)
}

// A MessageFramer can also spell an event as one message of a transport that keeps messages apart by itself.
type MessageFramer interface {
	Framer
	// AppendMessage appends the bare message: no newline, no length.
	AppendMessage(dst []byte, e WatchEvent) ([]byte, error)
	// DecodeMessage reads one message; the caller has bounded its size. It does not keep message.
	DecodeMessage(message []byte) (WatchEvent, error)
	// Binary reports whether messages are bytes rather than UTF-8 text.
	Binary() bool
}

// A Pacer is a Framer whose streams may carry bytes that are no events.
type Heartbeater interface {
	// AppendOpening appends what a stream begins with.
	AppendOpening(dst []byte) []byte
	// AppendHeartbeat appends what an idle stream carries to show that it lives. at is the version that the client may resume
	// from; zero: not said.
	AppendHeartbeat(dst []byte, at listwatch.Version) []byte
}

// A Positioner is a [Decoder], or a transport.Receiver, of a framing that carries the position of the stream next to the events, and
// possibly without an event.
type Positioner interface {
	// LastEventID returns the value that a client should send as Last-Event-ID after the last event or heartbeat. It is empty if the
	// stream has not sent a position. It may be called by the reader of the stream only.
	LastEventID() string
}

// DefaultLimit is how many bytes one event may have where nobody says otherwise: 16 MiB, well over etcd's largest object.
const DefaultLimit = 16 << 20

// A WatchEvent is an event as the wire spells it: Kubernetes' metav1.WatchEvent.
type WatchEvent struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or what a peer of the future says.
	Type string
	// Object is the object's JSON, compact, or that of a Status where Type is ERROR.
	Object []byte
	// Version is what a client may resume from after this event; zero: not from here (initial events, errors). Framings that
	// carry no position beside the object leave it zero when they decode.
	Version listwatch.Version
}

// TypeError is the type of the event that ends a stream that failed.
const TypeError = "ERROR"

// FromEvent returns e as the wire spells it.
func FromEvent(e listwatch.Event) WatchEvent {
	w := WatchEvent{Type: e.Type.String(), Object: e.Object.Data, Version: e.Version}
	if e.Initial {
		// Initial events come in key order: a client that resumed from one of their versions would miss the rest.
		w.Version = 0
	}
	return w
}
