// Package gorilla carries watches over WebSocket with github.com/gorilla/websocket. It is an
// alternative to package websocket for programs that already use this library; see package library.
package gorilla

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket/library"
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
func (*Server) Claims(r *http.Request) bool { return library.Server{}.Claims(r) }

// Accept upgrades the connection; see [library.Server.Accept].
func (s *Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	return library.Server{AllowOrigins: s.AllowOrigins, Upgrade: upgrade}.Accept(w, r, o)
}

// A Client dials watches like the Client of package websocket. The zero value is ready to use. It
// is safe for concurrent use.
//
// A Client reads only the first KiB of an error response, so a longer Status is lost.
type Client struct {
	transport.Network
}

var _ transport.Client = (*Client)(nil)

// Name returns "websocket".
func (*Client) Name() string { return "websocket" }

// Dial opens a watch, as Dial of package websocket does.
func (c *Client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return library.Dial(ctx, c.Network, r, dial)
}

// buffers holds the write buffers, which are in use only while a message is written.
var buffers sync.Pool

// upgrade is for [library.Server].
func upgrade(w http.ResponseWriter, r *http.Request, subprotocol string, isBinary bool) (library.ServerConn, error) {
	u := websocket.Upgrader{
		ReadBufferSize: 256, WriteBufferPool: &buffers, Subprotocols: []string{subprotocol},
		// Package library has checked the origin.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	c, err := u.Upgrade(w, r, w.Header())
	if err != nil {
		return nil, err
	}
	s := &serverConn{library: c, messageType: websocket.TextMessage}
	if isBinary {
		s.messageType = websocket.BinaryMessage
	}
	c.SetReadLimit(library.MaxMessage)
	c.SetPongHandler(func(string) error {
		s.pinged.Store(false)
		return nil
	})
	return s, nil
}

// A serverConn is a [library.ServerConn].
type serverConn struct {
	library     *websocket.Conn
	messageType int
	pinged      atomic.Bool // a ping is not answered yet
}

func (c *serverConn) Next() (message io.Reader, err error) {
	_, message, err = c.library.NextReader()
	if _, ok := err.(*websocket.CloseError); ok {
		err = io.EOF
	}
	return message, err
}

func (c *serverConn) Write(message []byte, timeout time.Duration) error {
	_ = c.library.SetWriteDeadline(deadline(timeout)) // always returns nil
	err := c.library.WriteMessage(c.messageType, message)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		return os.ErrDeadlineExceeded // gorilla's error does not wrap it
	}
	return err
}

func (c *serverConn) Ping(timeout time.Duration) bool {
	if c.pinged.Swap(true) {
		return false
	}
	_ = c.library.WriteControl(websocket.PingMessage, nil, deadline(timeout))
	return true
}

func (c *serverConn) WriteClose(code int, reason string, timeout time.Duration) error {
	payload := websocket.FormatCloseMessage(code, reason)
	return c.library.WriteControl(websocket.CloseMessage, payload, deadline(timeout))
}

func (c *serverConn) Close() { _ = c.library.Close() }

// deadline returns the deadline of a write that begins now. The zero time means no limit.
func deadline(timeout time.Duration) time.Time {
	if timeout < 0 {
		return time.Time{}
	}
	return time.Now().Add(timeout)
}

// dial is for [library.Dial].
func dial(ctx context.Context, h *library.Handshake) (library.ClientConn, *http.Response, error) {
	d := websocket.Dialer{
		NetDialContext: h.Transport.DialContext, NetDialTLSContext: h.Transport.DialTLSContext,
		TLSClientConfig: h.Transport.TLSClientConfig, HandshakeTimeout: h.Transport.ResponseHeaderTimeout,
		WriteBufferSize: 256, WriteBufferPool: &buffers, // for control frames
		Subprotocols: h.Subprotocols, EnableCompression: h.Compression,
	}
	u := *h.URL
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	c, resp, err := d.DialContext(ctx, u.String(), h.Header)
	if err != nil {
		return nil, resp, err
	}
	c.SetReadLimit(h.Limit)
	return clientConn{c}, resp, nil
}

// A clientConn is a [library.ClientConn].
type clientConn struct{ library *websocket.Conn }

func (c clientConn) Next(read func(io.Reader) error) (isBinary bool, err error) {
	kind, message, err := c.library.NextReader()
	if err == nil {
		err = read(message)
	}
	if e, ok := errors.AsType[*websocket.CloseError](err); ok {
		if err = library.Closed(e.Code, e.Text); e.Code == websocket.CloseAbnormalClosure {
			err = io.ErrUnexpectedEOF // the library has converted it
		}
	}
	return kind == websocket.BinaryMessage, err
}

func (c clientConn) WriteClose(code int, reason string) {
	payload := websocket.FormatCloseMessage(code, reason)
	_ = c.library.WriteControl(websocket.CloseMessage, payload, time.Now().Add(time.Second))
}

func (c clientConn) Close() { _ = c.library.Close() }
