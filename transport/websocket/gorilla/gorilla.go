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

	"github.com/listwatch/listwatch/transport/websocket/library"
)

// Server is the server side of the transport.
type Server = library.Server[adapter]

// Client is the client side of the transport. It reads only the first KiB of an error response, so
// a longer Status is lost.
type Client = library.Client[adapter]

// An adapter is a [library.Library].
type adapter struct{}

// buffers holds the write buffers, which are in use only while a message is written.
var buffers sync.Pool

func (adapter) Upgrade(
	w http.ResponseWriter, r *http.Request, subprotocol string, isBinary bool,
) (library.ServerConn, error) {
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

func (adapter) Dial(ctx context.Context, h *library.Handshake) (library.ClientConn, *http.Response, error) {
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
