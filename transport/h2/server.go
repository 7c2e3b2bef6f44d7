package h2

import (
	"net/http"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// A Server serves watches over HTTP/2. The zero value is ready to use. It is safe for
// concurrent use. It ignores [transport.Options.PingInterval], because pings belong to
// connections; see [Configure].
type Server struct{}

var _ transport.Server = Server{}

// plainEnvelope adds no bytes, because net/http makes the DATA frames.
var plainEnvelope = &transport.Envelope{}

// Name returns "h2".
func (Server) Name() string { return "h2" }

// Claims reports whether r is an HTTP/2 request other than CONNECT, which RFC 8441 uses for
// WebSocket.
func (Server) Claims(r *http.Request) bool {
	return r.ProtoMajor == 2 && r.Method != http.MethodConnect
}

// Accept implements [transport.Server] with [transport.OpenResponse], whose rules apply to the
// stream. It removes headers that HTTP/2 forbids (rfc9113#section-8.2.2), except Connection,
// whose value "close" makes net/http send GOAWAY.
//
// The client must accept each piece of up to 64 KiB within the write timeout; otherwise the
// stream is reset. Partial progress does not count, because net/http does not report it.
func (Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	encoder, err := transport.Negotiate(w, r, o, plainEnvelope)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
		w.Header().Del(name)
	}
	return transport.OpenResponse(w, r, o, encoder)
}

// Configure sets those fields of srv that are zero to values that suit watches:
//
//   - HTTP/1.1 and HTTP/2 on one port, in clear text and over TLS.
//   - At most 250 streams per connection, because the cost of a frame in net/http grows
//     with the number of streams.
//   - Small buffers for received data.
//   - A ping after o.PingInterval without traffic.
//   - A connection ends if it accepts no byte for o.WriteTimeout. Otherwise a stalled
//     connection would block its handlers forever.
//   - 10 s for a client to send the headers of a request, and 5 min until an idle
//     connection is closed.
//
// Configure does not set srv.WriteTimeout. If the caller has set it, each watch disables it
// for itself.
func Configure(srv *http.Server, o transport.Options) {
	if srv.Protocols == nil {
		srv.Protocols = new(http.Protocols)
		srv.Protocols.SetHTTP1(true)
		srv.Protocols.SetHTTP2(true)
		srv.Protocols.SetUnencryptedHTTP2(true)
	}
	setDefault(&srv.ReadHeaderTimeout, 10*time.Second)
	setDefault(&srv.IdleTimeout, 5*time.Minute)

	var c http.HTTP2Config
	if srv.HTTP2 != nil {
		c = *srv.HTTP2
	}
	setDefault(&c.MaxConcurrentStreams, 250)
	setDefault(&c.MaxReadFrameSize, 16<<10)
	setDefault(&c.MaxReceiveBufferPerConnection, 128<<10)
	setDefault(&c.MaxReceiveBufferPerStream, 64<<10)
	setDefault(&c.SendPingTimeout, max(0, o.PingIntervalOrDefault()))
	setDefault(&c.PingTimeout, max(0, min(o.PingIntervalOrDefault(), 15*time.Second)))
	setDefault(&c.WriteByteTimeout, max(0, o.WriteTimeoutOrDefault()))
	srv.HTTP2 = &c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
