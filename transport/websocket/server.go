package websocket

import (
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A Backend is the library that an end of a WebSocket speaks through.
type Backend uint8

const (
	// Gorilla is github.com/gorilla/websocket. As a server it writes the frames of all watchers from the same bytes, compressed or
	// not, many at once.
	Gorilla Backend = iota
	// Nhooyr is nhooyr.io/websocket. As a server it writes each message by itself, and keeps more memory for each watch. It
	// declines compression, which it would do anew for each watcher.
	Nhooyr
)

// String returns the name of b.
func (b Backend) String() string {
	if b == Nhooyr {
		return "nhooyr"
	}
	return "gorilla"
}

// A Server serves watches over WebSocket, RFC 6455, from HTTP/1.1. The zero Server is ready. It is safe for concurrent use.
type Server struct {
	// Backend is the library; zero: Gorilla.
	Backend Backend
	// Origins are the patterns of foreign pages that may watch, as [transport.OriginAllowed] reads them. Empty: pages of the
	// server itself alone. Check them with [transport.CheckOrigins]: one that is no pattern matches nothing.
	AllowOrigins []string
}

var _ transport.Server = (*Server)(nil)

// Name returns "websocket".
func (*Server) Name() string { return "websocket" }

// Claims reports whether r asks for an upgrade to WebSocket, well or badly. An Upgrade in HTTP/1.0 is none
// (rfc9110#section-7.8), and HTTP/2 has no Upgrade.
func (*Server) Claims(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoAtLeast(1, 1) &&
		hasToken(r.Header, "Connection", "upgrade") && hasToken(r.Header, "Upgrade", "websocket")
}

// Accept upgrades the connection. The subprotocol chooses the framing where it names one, else Accept does. The stream is always
// detached. The server pings; a client that doesn't answer before the next ping is cut off, one that sends messages is told
// not to (close 1008, or 1009 where they are large).
func (s *Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	if err := checkRequest(r, w.Header(), s.AllowOrigins); err != nil {
		return nil, err
	}
	envelope := s.envelope(r)
	subprotocol, encoder, err := negotiate(w, r, o, envelope)
	if err != nil {
		return nil, err
	}
	setDefault(&o.WriteTimeout, transport.DefaultWriteTimeout)
	setDefault(&o.PingInterval, transport.DefaultPingInterval)
	t, err := takeOver(w, o)
	if err != nil {
		return nil, err
	}
	var session session
	switch s.Backend {
	case Nhooyr:
		session, err = acceptNhooyr(t, r, subprotocol, encoder.Framer.(framing.MessageFramer).Binary())
	default:
		session, err = acceptGorilla(t, r, subprotocol, envelope == deflated)
	}
	if err != nil {
		t.conn.cut()
		return nil, &listwatch.Error{Code: listwatch.Unavailable, Op: op, Err: err}
	}
	sender := newStream(t.conn, session, o)
	return &transport.Stream{Sender: sender, Encoder: encoder, Done: sender.done, Detached: true}, nil
}

// envelope returns what is put around messages to the client of r.
func (s *Server) envelope(r *http.Request) *transport.Envelope {
	switch {
	case s.Backend == Nhooyr:
		return bare
	case offersDeflate(r.Header):
		return deflated
	}
	return framed
}

// setDefault gives d its default where it is zero.
func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// negotiate chooses the subprotocol, empty where there is none, and the framing. A subprotocol that names a framing stands in
// for Accept.
func negotiate(w http.ResponseWriter, r *http.Request, o transport.Options, e *transport.Envelope) (string, *transport.Encoder, error) {
	if o.Framings == nil {
		o.Framings = framing.Default()
	}
	subprotocol := chooseSubprotocol(r.Header, o.Framings)
	if mediaType := subprotocols[subprotocol]; mediaType != "" {
		r = &http.Request{Header: http.Header{"Accept": {mediaType}}}
	}
	encoder, err := transport.Negotiate(w, r, o, e)
	return subprotocol, encoder, err
}
