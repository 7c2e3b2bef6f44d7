package h2

import (
	"net/http"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// A Server serves streams over HTTP/2. The zero Server is ready. [transport.Options.PingInterval] is not for single streams: see
// [Configure].
type Server struct{}

var _ transport.Server = Server{}

// plainEnvelope: net/http makes the DATA frames.
var plainEnvelope = &transport.Envelope{}

// Name returns "h2".
func (Server) Name() string { return "h2" }

// Claims reports whether r came over HTTP/2 and is no extended CONNECT (RFC 8441).
func (Server) Claims(r *http.Request) bool {
	return r.ProtoMajor == 2 && r.Method != http.MethodConnect
}

// Accept is that of [transport.Server]; the stream is one of [transport.OpenResponse]. Headers that HTTP/2 forbids (RFC 9113, section
// 8.2.2) are taken out; Connection is left to net/http, for which "close" means GOAWAY. net/http does not tell how much of a write the peer
// has taken, so a piece of up to 64 KiB must be taken within the write time-out, or the stream is reset.
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

// Configure prepares srv for streams, in whatever the caller has left zero: HTTP/1.1 and HTTP/2, in clear text and over TLS, on one
// port; at most 250 streams a connection, because net/http's cost of a frame grows with their number; small buffers for what clients
// send; pings after o.PingInterval of silence; and the end of a connection that takes no byte for o.WriteTimeout, without which a
// stalled connection holds its handlers for ever. Headers must come within 10 s, and idle connections close after 5 min. It leaves
// WriteTimeout alone; a stream lifts it for itself.
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
