package library

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// A ServerConn is the server's end of a WebSocket. One goroutine reads. Write, Ping and WriteClose
// may be called at the same time.
type ServerConn interface {
	// Next returns the next message of the client. It answers pings and close frames. It returns
	// io.EOF after a close frame. After a violation of the protocol it has sent a close frame.
	Next() (message io.Reader, err error)
	// Write writes a message. The error is [os.ErrDeadlineExceeded] if that takes longer than
	// timeout. A negative timeout means no limit.
	Write(message []byte, timeout time.Duration) error
	// Ping sends a ping, and may wait for the answer for as long as timeout. It returns false if
	// the client has not answered this ping, or the previous one.
	Ping(timeout time.Duration) bool
	// WriteClose writes a close frame. It may wait for the answer for a few seconds.
	WriteClose(code int, reason string, timeout time.Duration) error
	// Close releases the resources of the library. The connection is closed before.
	Close()
}

// A Server serves watches over WebSocket. It is safe for concurrent use.
type Server struct {
	// AllowOrigins are the origins, in addition to the server's own, whose pages may watch.
	// They are patterns as in [transport.OriginAllowed]. An invalid pattern matches nothing.
	AllowOrigins []string
	// Upgrade accepts the handshake, which was checked before. The response has the headers of w
	// and, unless it is empty, the subprotocol. ServerConn.Write writes binary messages if isBinary
	// is true, and text messages otherwise. The messages of the client have at most [MaxMessage]
	// bytes; the library rejects longer ones. If Upgrade returns an error, what it has written to w
	// is discarded.
	Upgrade func(w http.ResponseWriter, r *http.Request, subprotocol string, isBinary bool) (ServerConn, error)
}

// MaxMessage is the maximum size of a message of a client.
const MaxMessage = wswatch.MaxInbound

var _ transport.Server = Server{}

// Name returns "websocket".
func (Server) Name() string { return "websocket" }

// Claims reports whether r requests an upgrade to WebSocket, valid or not.
func (Server) Claims(r *http.Request) bool { return httpheader.RequestsWebSocket(r) }

// messages is the envelope for libraries, which make the frames themselves.
var messages = &transport.Envelope{Messages: true}

// Accept upgrades the connection. Like Accept of package websocket, it negotiates the framing and
// limits the messages of the client. The client must accept each message within the write timeout.
func (s Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	if err := wswatch.CheckRequest(w, r, s.AllowOrigins); err != nil {
		return nil, err
	}
	if _, ok := w.(http.Hijacker); !ok {
		return nil, wswatch.ErrNoHijack(nil)
	}
	subprotocol, encoder, err := wswatch.Negotiate(w, r, o, messages)
	if err != nil {
		return nil, err
	}
	h := &hijacker{ResponseWriter: w, header: wswatch.WithoutHandshake(w.Header())}
	c, err := s.Upgrade(h, r, subprotocol, encoder.Framer.(framing.MessageFramer).Binary())
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unavailable, Op: "upgrade to WebSocket", Err: err}
	}
	out := &stream{conn: h.conn, library: c, timeout: o.WriteTimeoutOrDefault()}
	out.Init(out, out.timeout, transport.Encoder{})
	interval := o.PingIntervalOrDefault()
	out.pings = wswatch.StartPings(interval, func() bool { return out.ping(interval) })
	return &transport.Stream{Sender: out, Encoder: encoder, OnDone: out.OnDone, Serve: out.serve, Detached: o.Detach}, nil
}

// A hijacker is the http.ResponseWriter of a handshake. It keeps the connection below the library,
// and discards a response with which the library refuses the handshake.
type hijacker struct {
	http.ResponseWriter
	header http.Header
	conn   net.Conn
}

// Header implements http.ResponseWriter.
func (h *hijacker) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *hijacker) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols {
		clear(h.ResponseWriter.Header())
		maps.Copy(h.ResponseWriter.Header(), h.header)
		h.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (h *hijacker) Write(p []byte) (int, error) { return len(p), nil }

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffers, err := h.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		connio.TuneTCP(c)
		h.conn = c
	}
	return c, buffers, err
}

// closeWait is the time that a client has to answer a close frame, or to read it.
const closeWait = 5 * time.Second

// A stream is a watch being served. Of this package, only the goroutine that calls serve belongs to
// it.
type stream struct {
	transport.Conn
	// Immutable after construction.
	conn    net.Conn // below the library
	library ServerConn
	timeout time.Duration
	pings   *time.Timer
}

// WriteFrames implements [transport.Link].
func (s *stream) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		if err := s.library.Write(f, s.timeout); err != nil {
			return err
		}
	}
	return nil
}

// Interrupt implements [transport.Link].
func (s *stream) Interrupt() error {
	connio.Cut(s.conn)
	return nil
}

// End implements [transport.Link]. It does not wait for the client. The caller of serve waits for
// the answer to the close frame and closes the connection.
func (s *stream) End(end transport.End, _ []byte) error {
	code := wswatch.CloseNormal
	switch end {
	case transport.Abort:
		return s.Interrupt()
	case transport.GoingAway:
		code = wswatch.CloseGoingAway
	}
	go func() {
		if s.library.WriteClose(code, "", s.timeout) != nil {
			connio.Cut(s.conn)
		}
		_ = s.conn.SetReadDeadline(time.Now().Add(closeWait))
	}()
	return nil
}

// serve reads until the connection ends. It ignores messages.
func (s *stream) serve() {
	err := s.discardMessages()
	// From now on Close must have no effect, because it could cut the connection before the client
	// has received the close frame.
	isFirst := s.Disconnect()
	s.pings.Stop()
	if v, ok := errors.AsType[*wswatch.Violation](err); ok {
		_ = s.library.WriteClose(v.Code, v.Reason, closeWait)
	}
	if err != io.EOF && isFirst {
		connio.Linger(s.conn, closeWait)
	}
	_ = s.conn.Close()
	s.library.Close()
}

// minFrame is the size of the smallest frame of a client: two bytes and the mask.
const minFrame = 2 + 4

// discardMessages reads messages until an error occurs, and returns the error.
func (s *stream) discardMessages() error {
	var inbound wswatch.Inbound
	for {
		message, err := s.library.Next()
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, message)
		if err == nil {
			err = inbound.Add(n + minFrame)
		}
		if err != nil {
			return err
		}
	}
}

// ping sends a ping. If the client does not answer, it ends the stream and returns false.
func (s *stream) ping(interval time.Duration) bool {
	isAlive := s.library.Ping(interval)
	if !isAlive {
		_ = s.Close(transport.Abort)
	}
	return isAlive
}
