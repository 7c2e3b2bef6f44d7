package websocket

import (
	"net/http"

	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// A Server serves watches over WebSocket (RFC 6455): over HTTP/1.1, and over HTTP/2 (RFC 8441) if
// h2.Config permits it. It writes the same bytes to all watchers, compressed or not, and many
// messages at once. The zero value is ready to use. It is safe for concurrent use.
type Server struct{}

var _ transport.Server = (*Server)(nil)

// Name returns "websocket".
func (*Server) Name() string { return "websocket" }

// Claims reports whether r requests an upgrade to WebSocket, valid or not. HTTP/1.0 has no upgrades
// (rfc9110#section-7.8).
func (*Server) Claims(r *http.Request) bool { return httpheader.RequestsWebSocket(r) }

// Accept upgrades the connection. The subprotocol selects the framing if it names a framing.
// Otherwise the Accept header selects the framing.
//
// The server sends pings, and disconnects a client that has not answered a ping before the next
// ping. It ignores messages from the client, up to 64 KiB a minute. It closes the connection with
// code 1008 if the messages of a minute exceed this limit together, and with 1009 if a single
// message does.
func (*Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	if err := wswatch.CheckRequest(w, r, o.AllowOrigins); err != nil {
		return nil, err
	}
	extensions, agreed := acceptDeflate(r.Header, o.Segments)
	envelope := framedEnvelope
	if agreed.deflate {
		envelope = deflatedEnvelope
	}
	subprotocol, encoder, err := wswatch.Negotiate(w, r, o, envelope)
	if err != nil {
		return nil, err
	}
	conn, early, err := hijack(w)
	if err != nil {
		return nil, err
	}
	sender := newStream(conn, early, agreed.deflate, o)
	sender.open(switchingProtocols(r, w.Header(), subprotocol, extensions), o)
	stream := &transport.Stream{
		Sender: sender, Encoder: encoder, OnDone: sender.OnDone, Serve: sender.serve,
		Detached: o.Detach, Segments: agreed.sharesHistory,
	}
	if sender.tunnel != nil {
		stream.Sender = scheduledStream{sender}
	}
	return stream, nil
}

// A scheduledStream is a stream over a tunnel.
type scheduledStream struct{ *stream }

var _ transport.Scheduler = scheduledStream{}

func (s scheduledStream) Go(f func()) { s.tunnel.Go(f) }

func (s scheduledStream) Run(f func()) { s.tunnel.Run(f) }
