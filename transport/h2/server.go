package h2

import (
	"net/http"
	"sync"

	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2/internal/loop"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A Server serves watches over HTTP/2, and over HTTP/3 if another server passes such requests to
// the handler. The zero value is ready to use. It is safe for concurrent use. It ignores
// [transport.Options.PingInterval], because pings belong to connections; see [Configure].
type Server struct{}

var _ transport.Server = Server{}

// plainEnvelope adds no bytes, because the connection makes the DATA frames.
var plainEnvelope = &transport.Envelope{}

// Name returns "h2".
func (Server) Name() string { return "h2" }

// Claims reports whether r is a request over HTTP/2 or HTTP/3 that neither opens a WebSocket nor is
// a CONNECT.
func (Server) Claims(r *http.Request) bool {
	return r.ProtoMajor >= 2 && r.Method != http.MethodConnect && !httpheader.RequestsWebSocket(r)
}

// Accept implements [transport.Server]. It removes headers that HTTP/2 forbids
// (rfc9113#section-8.2.2), except Connection, whose value "close" makes the server send GOAWAY.
//
// If w is the connection loop's own http.ResponseWriter, the stream has no goroutine: see
// [transport.Scheduler]. The client must accept a byte of pending data within the write timeout;
// otherwise the stream is reset.
//
// For any other w, such as a writer of middleware or of net/http, Accept uses
// [transport.OpenResponse], whose rules then apply to the stream. With net/http, partial progress
// does not count: the client must accept each piece of up to 64 KiB within the write timeout.
func (Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	encoder, err := transport.Negotiate(w, r, o, plainEnvelope)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
		w.Header().Del(name)
	}
	coding := encoder.NewStreamCoding()
	if watch := loop.TakeOver(w, o.WriteTimeoutOrDefault(), o.Detach, coding.Header()); watch.IsValid() {
		out := &transport.Stream{
			Sender: sender{watch}, Encoder: encoder, OnDone: watch.OnDone, Detached: o.Detach, Segments: o.Segments,
		}
		if coding != nil {
			out.Sender = &codingSender{sender: sender{watch}, coding: coding}
		}
		return out, nil
	}
	return transport.OpenResponse(w, r, o, encoder)
}

// A sender is the Sender of a stream of the connection loop, without a content coding.
type sender struct{ watch loop.Watch }

// Go implements [transport.Scheduler].
func (s sender) Go(f func()) { s.watch.Go(f) }

// Run implements [transport.Scheduler].
func (s sender) Run(f func()) { s.watch.Run(f) }

// Send implements [transport.Sender].
func (s sender) Send(frames [][]byte) error {
	if err := s.watch.Send(frames); err != nil {
		return connio.SendError(err)
	}
	return nil
}

// Close implements [transport.Sender]. It does not wait: the connection's writer sends what is
// left.
func (s sender) Close(end transport.End) error { return s.close(end, nil) }

func (s sender) close(end transport.End, trailer []byte) error {
	if end == transport.Abort {
		s.watch.Abort()
	} else {
		s.watch.Close(trailer)
	}
	return nil
}

// A codingSender is a sender with a content coding.
type codingSender struct {
	sender
	mu     sync.Mutex // guards the state of coding: Close may be called during Send
	coding *transport.StreamCoding
}

// Send implements [transport.Sender].
func (s *codingSender) Send(frames [][]byte) error {
	s.mu.Lock()
	s.coding.Apply(frames)
	s.mu.Unlock()
	return s.sender.Send(frames)
}

// Close implements [transport.Sender].
func (s *codingSender) Close(end transport.End) error {
	s.mu.Lock()
	trailer := s.coding.Trailer()
	s.mu.Unlock()
	return s.close(end, trailer)
}
