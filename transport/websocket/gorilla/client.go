package gorilla

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

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
	return wswatch.Dial(ctx, r, c.dial)
}

func (c *Client) dial(ctx context.Context, r *wswatch.Request) (wswatch.Conn, http.Header, error) {
	t, observed := wswatch.ObservedTransport(c.Network, r)
	detachContext := func() bool { return true }
	dial := func(_ context.Context, network, addr string) (net.Conn, error) {
		c, err := t.DialContext(ctx, network, addr)
		if err == nil {
			// While the library waits for the response, it observes the deadline of ctx but not a
			// cancellation, so close the connection when ctx ends.
			detachContext = context.AfterFunc(ctx, func() { c.Close() })
		}
		return c, err
	}
	d := websocket.Dialer{
		NetDialContext: dial, TLSClientConfig: t.TLSClientConfig, HandshakeTimeout: t.ResponseHeaderTimeout,
		WriteBufferSize: 256, WriteBufferPool: &buffers, // for control frames
		Subprotocols: r.Subprotocols, EnableCompression: len(r.Codings) > 0,
	}
	u := *r.URL
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	library, resp, err := d.DialContext(ctx, u.String(), r.Header())
	switch {
	case !detachContext():
		return nil, nil, ctx.Err() // the connection is closed
	case err == nil:
		library.SetReadLimit(r.Limit)
		return &conn{library, observed(), r, bytes.Buffer{}}, resp.Header, nil
	case resp == nil:
		return nil, nil, err
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return nil, nil, wswatch.ErrBadResponse(err.Error())
	}
	return nil, nil, transport.ResponseError(resp)
}

// A conn reads with the library, which answers pings and close frames.
type conn struct {
	library  *websocket.Conn
	observed *wswatch.Observed
	request  *wswatch.Request
	buffer   bytes.Buffer
}

// Next implements [wswatch.Conn].
func (c *conn) Next() (isBinary bool, message []byte, err error) {
	kind, reader, err := c.library.NextReader()
	within := err == nil
	if err == nil {
		message, err = c.request.ReadMessage(&c.buffer, reader)
	}
	switch e, ok := errors.AsType[*websocket.CloseError](err); {
	case ok && e.Code == websocket.CloseAbnormalClosure: // the library's error for io.EOF
		err = io.ErrUnexpectedEOF
	case ok && !within:
		return false, nil, &wswatch.CloseFrame{Code: e.Code, Reason: e.Text}
	}
	if err != nil {
		err = c.observed.ReceiveError(err, within)
	}
	return kind == websocket.BinaryMessage, message, err
}

// WriteClose implements [wswatch.Conn].
func (c *conn) WriteClose(code int, reason string) {
	_ = c.library.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
}

// Cut implements [wswatch.Conn].
func (c *conn) Cut() { connio.Cut(c.library.NetConn()) }
