package websocket

import (
	"cmp"
	"net/http"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A Backend is the library that implements an end of a WebSocket.
type Backend uint8

const (
	// Gorilla is github.com/gorilla/websocket. A server with it writes the same bytes to all
	// watchers, compressed or not, and many frames at once.
	Gorilla Backend = iota
	// Nhooyr is nhooyr.io/websocket. A server with it writes each message separately and uses
	// more memory per watch. It declines compression, because it would compress each message
	// again for each watcher.
	Nhooyr
)

// String returns the name of b.
func (b Backend) String() string {
	if b == Nhooyr {
		return "nhooyr"
	}
	return "gorilla"
}

// A Server serves watches over WebSocket (RFC 6455) for HTTP/1.1 requests. The zero value is
// ready to use. It is safe for concurrent use.
type Server struct {
	// Backend is the library to use. The zero value is Gorilla.
	Backend Backend
	// AllowOrigins are the origins, in addition to the server's own, whose pages may watch.
	// They are patterns as in [transport.OriginAllowed]. An invalid pattern matches nothing;
	// check patterns with [transport.CheckOrigins].
	AllowOrigins []string
}

var _ transport.Server = (*Server)(nil)

// Name returns "websocket".
func (*Server) Name() string { return "websocket" }

// Claims reports whether r requests an upgrade to WebSocket, valid or not. HTTP/1.0
// (rfc9110#section-7.8) and HTTP/2 have no upgrades.
func (*Server) Claims(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoAtLeast(1, 1) &&
		hasToken(r.Header, "Connection", "upgrade") && hasToken(r.Header, "Upgrade", "websocket")
}

// Accept upgrades the connection. The subprotocol selects the framing if it names one. Otherwise
// the Accept header selects it.
//
// The server sends pings, and disconnects a client that has not answered a ping before the next
// one. It ignores messages from the client, up to 64 KiB a minute. It closes with code 1008 after
// more of them, and with 1009 after one that is longer.
func (s *Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	if err := checkRequest(r, w.Header(), s.AllowOrigins); err != nil {
		return nil, err
	}
	envelope := s.envelope(r)
	subprotocol, encoder, err := negotiate(w, r, o, envelope)
	if err != nil {
		return nil, err
	}
	o.WriteTimeout = cmp.Or(o.WriteTimeout, transport.DefaultWriteTimeout)
	o.PingInterval = cmp.Or(o.PingInterval, transport.DefaultPingInterval)
	h, err := hijack(w, o)
	if err != nil {
		return nil, err
	}
	var library serverConn
	switch s.Backend {
	case Nhooyr:
		library, err = acceptNhooyr(h, r, subprotocol, encoder.Framer.(framing.MessageFramer).Binary())
	default:
		library, err = acceptGorilla(h, r, subprotocol, envelope == deflatedEnvelope)
	}
	if err != nil {
		h.conn.cut()
		return nil, &listwatch.Error{Code: listwatch.Unavailable, Op: opUpgrade, Err: err}
	}
	sender := newStream(h.conn, library, o)
	return &transport.Stream{Sender: sender, Encoder: encoder, OnDone: sender.done.OnSet, Serve: sender.read, Detached: o.Detach}, nil
}

// envelope returns the envelope of messages to the client of r.
func (s *Server) envelope(r *http.Request) *transport.Envelope {
	switch {
	case s.Backend == Nhooyr:
		return bareEnvelope
	case offersDeflate(r.Header):
		return deflatedEnvelope
	}
	return framedEnvelope
}

// negotiate selects the subprotocol, which may be "", and the framing. If the subprotocol names
// a framing, the Accept header is ignored.
func negotiate(w http.ResponseWriter, r *http.Request, o transport.Options, e *transport.Envelope) (string, *transport.Encoder, error) {
	if o.Framings == nil {
		o.Framings = framing.Default()
	}
	subprotocol, f := chooseSubprotocol(r.Header, o.Framings)
	if f != nil {
		r = &http.Request{Header: http.Header{"Accept": {f.MediaType()}}}
	}
	encoder, err := transport.Negotiate(w, r, o, e)
	return subprotocol, encoder, err
}
