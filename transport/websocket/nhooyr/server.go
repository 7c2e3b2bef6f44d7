// Package nhooyr carries watches over WebSocket with nhooyr.io/websocket. It is an alternative to
// package websocket for programs that already use this library. Both speak the same protocol, but a
// server with nhooyr writes each message separately, takes more memory for each watch, and does not
// compress, because it would compress each message again for each watcher.
//
// The module nhooyr.io/websocket is deprecated because it continues as github.com/coder/websocket,
// which has the same API.
package nhooyr

//lint:file-ignore SA1019 see above: every call of the module is reported

import (
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"nhooyr.io/websocket"

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

// Accept upgrades the connection. Like Accept of package websocket, it negotiates the framing and
// limits the messages of the client. The client must accept each message within the write timeout.
func (s *Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	subprotocol, encoder, err := wswatch.Prepare(w, r, o, s.AllowOrigins)
	if err != nil {
		return nil, err
	}
	header := wswatch.WithoutHandshake(w.Header())
	clear(w.Header())
	maps.Copy(w.Header(), header)
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // Prepare has checked the origin
	})
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unavailable, Op: "upgrade to WebSocket", Err: err}
	}
	sender := &stream{conn: c, timeout: o.WriteTimeoutOrDefault(), messageType: websocket.MessageText}
	if encoder.Framer.(framing.MessageFramer).Binary() {
		sender.messageType = websocket.MessageBinary
	}
	interval := o.PingIntervalOrDefault()
	sender.pings = wswatch.StartPings(interval, func() bool { return sender.ping(interval) })
	return &transport.Stream{Sender: sender, Encoder: encoder, OnDone: sender.done.OnSet, Serve: sender.serve, Detached: o.Detach}, nil
}

// A stream is a watch being served. In addition to the goroutine that calls serve, the library has
// a goroutine for timeouts.
type stream struct {
	// Immutable after construction.
	conn        *websocket.Conn
	messageType websocket.MessageType
	timeout     time.Duration

	done   connio.Done
	closed atomic.Bool // Close was called
	pings  *time.Timer
}

// Send implements [transport.Sender].
func (s *stream) Send(frames [][]byte) error {
	if s.done.IsSet() {
		return connio.ErrSenderClosed // the library may still wait for the client's close frame
	}
	for _, f := range frames {
		if err := s.write(f); err != nil {
			s.done.Set()
			return connio.SendError(err)
		}
	}
	return nil
}

func (s *stream) write(frame []byte) error {
	ctx := context.Background()
	if s.timeout >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	err := s.conn.Write(ctx, s.messageType, frame) // closes the connection at the end of ctx
	if err != nil && ctx.Err() != nil {
		return os.ErrDeadlineExceeded
	}
	return err
}

// Close implements [transport.Sender].
func (s *stream) Close(end transport.End) error {
	if s.closed.Swap(true) {
		return nil
	}
	s.done.Set()
	switch end {
	case transport.Abort:
		_ = s.conn.CloseNow()
	case transport.GoingAway:
		go s.conn.Close(websocket.StatusGoingAway, "") // waits for the answer of the client for 5 s
	default:
		go s.conn.Close(websocket.StatusNormalClosure, "")
	}
	return nil
}

// serve reads until the connection ends. The library answers pings and close frames, and writes a
// close frame after a violation of the protocol.
func (s *stream) serve() {
	s.conn.SetReadLimit(wswatch.MaxInbound)
	err := wswatch.DiscardMessages(func() (io.Reader, error) {
		_, message, err := s.conn.Reader(context.Background())
		return message, err
	})
	// From now on Close must have no effect, because it could cut the connection before the client
	// has received the close frame.
	s.closed.Store(true)
	s.done.Set()
	s.pings.Stop()
	if v, ok := err.(*wswatch.Violation); ok {
		_ = s.conn.Close(websocket.StatusCode(v.Code), v.Reason)
	}
	_ = s.conn.CloseNow()
}

// ping sends a ping and waits for the answer. If there is no answer within timeout, it ends the
// stream and returns false.
func (s *stream) ping(timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := s.conn.Ping(ctx)
	if err == nil || s.done.IsSet() {
		return err == nil
	}
	s.done.Set()
	_ = s.conn.CloseNow()
	return false
}
