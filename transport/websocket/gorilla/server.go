// Package gorilla carries watches over WebSocket with github.com/gorilla/websocket. It is an
// alternative to package websocket for programs that already use this library. Both speak the same
// protocol, but a server with gorilla writes each message separately, takes more memory for each
// watch, and does not compress, because it would compress each message again for each watcher.
package gorilla

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// A Server serves watches over WebSocket for HTTP/1.1 requests. The zero value is ready to use. It
// is safe for concurrent use.
type Server struct {
	// AllowOrigins are the origins, in addition to the server's own, whose pages may watch.
	// They are patterns as in [transport.OriginAllowed]. An invalid pattern matches nothing;
	// check patterns with [transport.CheckOrigins].
	AllowOrigins []string
}

var _ transport.Server = (*Server)(nil)

// Name returns "websocket".
func (*Server) Name() string { return "websocket" }

// Claims reports whether r requests an upgrade to WebSocket, valid or not.
func (*Server) Claims(r *http.Request) bool { return httpheader.RequestsWebSocket(r) }

// buffers holds the write buffers, which are in use only while a message is written.
var buffers sync.Pool

// Accept upgrades the connection. Like Accept of package websocket, it negotiates the framing and
// limits the messages of the client. The client must accept each message within the write timeout.
func (s *Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	subprotocol, encoder, err := wswatch.Prepare(w, r, o, s.AllowOrigins)
	if err != nil {
		return nil, err
	}
	u := websocket.Upgrader{
		ReadBufferSize: 256, WriteBufferPool: &buffers, Subprotocols: []string{subprotocol},
		CheckOrigin: func(*http.Request) bool { return true }, // Prepare has checked the origin
		// The caller of Accept responds with the error.
		Error: func(http.ResponseWriter, *http.Request, int, error) {},
	}
	c, err := u.Upgrade(w, r, wswatch.WithoutHandshake(w.Header()))
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unavailable, Op: "upgrade to WebSocket", Err: err}
	}
	connio.TuneTCP(c.NetConn())
	sender := &stream{conn: c, timeout: o.WriteTimeoutOrDefault(), messageType: websocket.TextMessage}
	if encoder.Framer.(framing.MessageFramer).Binary() {
		sender.messageType = websocket.BinaryMessage
	}
	sender.pings = wswatch.StartPings(o.PingIntervalOrDefault(), sender.ping)
	return &transport.Stream{Sender: sender, Encoder: encoder, OnDone: sender.done.OnSet, Serve: sender.serve, Detached: o.Detach}, nil
}

// closeWait is the time that a client has to answer a close frame.
const closeWait = 5 * time.Second

// A stream is a watch being served. Its only goroutine is the one that calls serve.
type stream struct {
	// Immutable after construction.
	conn        *websocket.Conn
	messageType int
	timeout     time.Duration

	done   connio.Done
	closed atomic.Bool // Close was called
	pinged atomic.Bool // a ping is not answered yet
	pings  *time.Timer
}

// deadline returns the deadline of a write that begins now. The zero time means no limit.
func (s *stream) deadline() time.Time {
	if s.timeout < 0 {
		return time.Time{}
	}
	return time.Now().Add(s.timeout)
}

// Send implements [transport.Sender].
func (s *stream) Send(frames [][]byte) error {
	for _, f := range frames {
		_ = s.conn.SetWriteDeadline(s.deadline()) // always returns nil
		err := s.conn.WriteMessage(s.messageType, f)
		if err == nil {
			continue
		}
		if e, ok := err.(net.Error); ok && e.Timeout() {
			err = os.ErrDeadlineExceeded // gorilla's error does not wrap it
		}
		if !s.done.IsSet() {
			s.cut()
		}
		return connio.SendError(err)
	}
	return nil
}

// Close implements [transport.Sender]. The caller of serve waits for the answer of the client and
// closes the connection.
func (s *stream) Close(end transport.End) error {
	if s.closed.Swap(true) {
		return nil
	}
	code := websocket.CloseNormalClosure
	if end == transport.GoingAway {
		code = websocket.CloseGoingAway
	}
	s.done.Set()
	if end == transport.Abort || s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), s.deadline()) != nil {
		s.cut()
		return nil
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(closeWait))
	return nil
}

func (s *stream) cut() {
	s.done.Set()
	connio.Cut(s.conn.NetConn())
}

// serve reads until the connection ends. The library answers pings and close frames, and writes a
// close frame after a violation of the protocol.
func (s *stream) serve() {
	s.conn.SetReadLimit(wswatch.MaxInbound)
	s.conn.SetPongHandler(func(string) error {
		s.pinged.Store(false)
		return nil
	})
	err := wswatch.DiscardMessages(func() (io.Reader, error) {
		_, message, err := s.conn.NextReader()
		return message, err
	})
	// From now on Close must have no effect, because it could cut the connection before the client
	// has received the close frame.
	ended := s.closed.Swap(true)
	s.done.Set()
	s.pings.Stop()
	if v, ok := errors.AsType[*wswatch.Violation](err); ok {
		_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(v.Code, v.Reason), time.Now().Add(closeWait))
	}
	if _, ok := err.(*websocket.CloseError); !ok && !ended {
		connio.Linger(s.conn.NetConn(), closeWait)
	}
	_ = s.conn.Close()
}

// ping sends a ping. If the client has not answered the previous ping, it ends the stream instead.
// It returns false if the stream has ended.
func (s *stream) ping() bool {
	if s.done.IsSet() {
		return false
	}
	if s.pinged.Swap(true) {
		s.cut()
		return false
	}
	_ = s.conn.WriteControl(websocket.PingMessage, nil, s.deadline())
	return true
}
