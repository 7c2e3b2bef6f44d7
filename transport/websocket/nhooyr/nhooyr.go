// Package nhooyr carries watches over WebSocket with nhooyr.io/websocket. It is an alternative to
// package websocket for programs that already use this library; see package library.
//
// The module nhooyr.io/websocket is deprecated because it continues as github.com/coder/websocket,
// which has the same API.
package nhooyr

//lint:file-ignore SA1019 see above: every call of the module is reported

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"nhooyr.io/websocket"

	"github.com/listwatch/listwatch/transport/websocket/library"
)

// Server is the server side of the transport.
type Server = library.Server[adapter]

// Client is the client side of the transport. It reads only the first KiB of an error response, so
// a longer Status is lost.
type Client = library.Client[adapter]

// An adapter is a [library.Library].
type adapter struct{}

func (adapter) Upgrade(
	w http.ResponseWriter, r *http.Request, subprotocol string, isBinary bool,
) (library.ServerConn, error) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // package library has checked the origin
	})
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(library.MaxMessage)
	if isBinary {
		return &serverConn{c, websocket.MessageBinary}, nil
	}
	return &serverConn{c, websocket.MessageText}, nil
}

// A serverConn is a [library.ServerConn].
type serverConn struct {
	library     *websocket.Conn
	messageType websocket.MessageType
}

func (c *serverConn) Next() (message io.Reader, err error) {
	_, message, err = c.library.Reader(context.Background())
	if websocket.CloseStatus(err) >= 0 {
		err = io.EOF
	}
	return message, err
}

func (c *serverConn) Write(message []byte, timeout time.Duration) error {
	ctx := context.Background()
	if timeout >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err := c.library.Write(ctx, c.messageType, message) // closes the connection at the end of ctx
	if err != nil && ctx.Err() != nil {
		return os.ErrDeadlineExceeded
	}
	return err
}

func (c *serverConn) Ping(timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return c.library.Ping(ctx) == nil
}

func (c *serverConn) WriteClose(code int, reason string, _ time.Duration) error {
	// Close waits for the answer. Its error does not matter, because it has closed the connection.
	_ = c.library.Close(websocket.StatusCode(code), reason)
	return nil
}

func (c *serverConn) Close() { _ = c.library.CloseNow() }

func (adapter) Dial(ctx context.Context, h *library.Handshake) (library.ClientConn, *http.Response, error) {
	withoutRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o := &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: h.Transport, CheckRedirect: withoutRedirects},
		HTTPHeader:   h.Header,
		Subprotocols: h.Subprotocols,
	}
	if h.Compression {
		o.CompressionMode = websocket.CompressionNoContextTakeover
	}
	c, resp, err := websocket.Dial(ctx, h.URL.String(), o)
	if err != nil {
		return nil, resp, err
	}
	c.SetReadLimit(h.Limit)
	return clientConn{c}, resp, nil
}

// A clientConn is a [library.ClientConn].
type clientConn struct{ library *websocket.Conn }

func (c clientConn) Next(read func(io.Reader) error) (isBinary bool, err error) {
	kind, message, err := c.library.Reader(context.Background())
	if err == nil {
		err = read(message)
	}
	if e, ok := errors.AsType[websocket.CloseError](err); ok {
		err = library.Closed(int(e.Code), e.Reason)
	}
	return kind == websocket.MessageBinary, err
}

func (c clientConn) WriteClose(code int, reason string) {
	_ = c.library.Close(websocket.StatusCode(code), reason)
}

func (c clientConn) Close() { _ = c.library.CloseNow() }
