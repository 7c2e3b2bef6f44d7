package h2

import (
	"net/http"
	"sync"
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
// has taken, so a piece of up to [transport.BatchBytes] must be taken within the write time-out, or the stream is reset.
func (Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	encoder, err := transport.Negotiate(w, r, o, plainEnvelope)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
		w.Header().Del(name)
	}
	g := &guard{rc: http.NewResponseController(w), timeout: o.WriteTimeoutOrDefault()}
	return transport.OpenResponse(w, r, o, encoder, g)
}

// A guard bounds the writes of one stream. A deadline of net/http won't do: when it passes, the stream is reset even if it is
// idle, and it can't be moved then; moving it often costs more than the write. So there is a timer that runs during writes alone.
type guard struct {
	// Immutable after construction.
	rc      *http.ResponseController
	timeout time.Duration // negative: none

	mu    sync.Mutex
	timer *time.Timer // guarded by mu; nil before the first Begin
	until time.Time   // guarded by mu; zero: no write is under way
}

func (g *guard) Begin() {
	if g.timeout < 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Now().Add(g.timeout)
	if g.timer == nil {
		g.timer = time.AfterFunc(g.timeout, g.expire)
	} else {
		g.timer.Reset(g.timeout)
	}
}

func (g *guard) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
	g.until = time.Time{}
}

// expire resets the stream. It holds mu, so that it never touches the response after End, when the handler may have returned.
func (g *guard) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until.IsZero() || time.Now().Before(g.until) {
		return // the timer fired for a write that has ended
	}
	_ = g.rc.SetWriteDeadline(time.Unix(1, 0)) // where w doesn't lead to the stream, the time-out of the connection remains
}

// Abort does nothing: the deadline in the past has sent RST_STREAM.
func (g *guard) Abort() error { return nil }

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
