package h2

import (
	"net/http"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2/internal/loop"
)

// A Config configures an http.Server for watches. The zero value is ready to use.
type Config struct {
	// WriteTimeout is the time after which a connection ends if it accepts no byte of pending data.
	// If zero, [transport.DefaultWriteTimeout] is used. A negative value means no limit.
	WriteTimeout time.Duration
	// PingInterval is the time without traffic after which the server pings a connection. If zero,
	// [transport.DefaultPingInterval] is used. A negative value disables pings.
	PingInterval time.Duration
	// NetHTTP keeps the HTTP/2 implementation of net/http, which needs a goroutine for each watch
	// and much more CPU for each event. By default the connection loop of this package replaces it.
	NetHTTP bool
	// ExtendedConnect permits WebSocket over HTTP/2 (RFC 8441), unless NetHTTP is true. Browsers
	// then open all WebSockets of the origin as streams of one connection. Handlers see such a
	// WebSocket as the request that an HTTP/1.1 client would have sent, GET with Upgrade, but with
	// ProtoMajor 2. The http.ResponseWriter is an http.Hijacker, so WebSocket libraries for
	// HTTP/1.1 work too.
	ExtendedConnect bool
	// HeaderBytes is the maximum size of a request's header list that the server announces to
	// clients (RFC 9113, section 6.5.2). It counts 32 bytes for each field in addition to its name
	// and value. If zero, it is 64 KiB, the size of the headers that a watchserver accepts by
	// default. A larger list, up to srv.MaxHeaderBytes, reaches the handler, which may refuse it.
	// With NetHTTP, HeaderBytes has no effect.
	HeaderBytes int
}

// Configure makes srv serve HTTP/2 over TLS, and in clear text with prior knowledge. It uses the
// connection loop of this package, unless c.NetHTTP is set. The loop uses srv.HTTP2 and the
// timeouts of srv. Configure must be called before srv is used, and after any other function that
// configures HTTP/2, such as ConfigureServer of golang.org/x/net/http2.
//
// Configure sets those fields of srv that are zero to values that suit watches:
//
//   - HTTP/1.1 and HTTP/2 on one port, in clear text and over TLS.
//   - At most 250 streams per connection with NetHTTP, where the cost of a frame grows with their
//     number, and 1,000 without.
//   - With NetHTTP, small buffers for received data. Without, a small table for the compression of
//     sent headers.
//   - A ping after c.PingInterval without traffic.
//   - A connection ends if it accepts no byte for c.WriteTimeout. Otherwise a stalled connection
//     would block its handlers forever.
//   - 10 s for a client to send the headers of a request, and [DefaultIdleTimeout] until an idle
//     connection is closed. The loop gives a client at least the ReadHeaderTimeout for its first
//     bytes and for the acknowledgment of SETTINGS.
//   - At most twice c.HeaderBytes of headers in a request, so that a watchserver can refuse larger
//     headers than it accepts with a Status.
//
// Configure does not set srv.WriteTimeout. If the caller has set it, each watch disables it for
// itself.
func Configure(srv *http.Server, c Config) {
	if srv.Protocols == nil {
		srv.Protocols = new(http.Protocols)
		srv.Protocols.SetHTTP1(true)
		srv.Protocols.SetHTTP2(true)
		srv.Protocols.SetUnencryptedHTTP2(true)
	}
	setDefault(&srv.ReadHeaderTimeout, 10*time.Second)
	setDefault(&srv.IdleTimeout, DefaultIdleTimeout)
	setDefault(&c.HeaderBytes, 64<<10)
	setDefault(&srv.MaxHeaderBytes, 2*c.HeaderBytes)

	var h http.HTTP2Config
	if srv.HTTP2 != nil {
		h = *srv.HTTP2
	}
	setDefault(&h.MaxReadFrameSize, 16<<10)
	o := transport.Options{WriteTimeout: c.WriteTimeout, PingInterval: c.PingInterval}
	setDefault(&h.SendPingTimeout, max(0, o.PingIntervalOrDefault()))
	setDefault(&h.PingTimeout, max(0, min(o.PingIntervalOrDefault(), 15*time.Second)))
	setDefault(&h.WriteByteTimeout, max(0, o.WriteTimeoutOrDefault()))
	if c.NetHTTP {
		setDefault(&h.MaxConcurrentStreams, 250)
		setDefault(&h.MaxReceiveBufferPerConnection, 128<<10)
		setDefault(&h.MaxReceiveBufferPerStream, 64<<10)
	} else {
		setDefault(&h.MaxConcurrentStreams, 1000)
		setDefault(&h.MaxEncoderHeaderTableSize, 512)
		o := loop.Options{ExtendedConnect: c.ExtendedConnect, HeaderBytes: c.HeaderBytes}
		(&loop.Server{Options: o}).Register(srv)
	}
	srv.HTTP2 = &h
}

// DefaultIdleTimeout is the time after which an idle connection is closed. It exceeds the 600 s for
// which load balancers, such as Google Cloud's, keep their connections to servers. If the server
// closed a connection first, a request on its way would fail with 502.
const DefaultIdleTimeout = 620 * time.Second

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
