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

// upgrade is for [library.Server].
func upgrade(w http.ResponseWriter, r *http.Request, subprotocol string, isBinary bool) (library.ServerConn, error) {
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

// dial is for [library.Dial].
func dial(ctx context.Context, h *library.Handshake) (library.ClientConn, *http.Response, error) {
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
