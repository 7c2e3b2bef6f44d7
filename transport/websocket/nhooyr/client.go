package nhooyr

//lint:file-ignore SA1019 see server.go

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"nhooyr.io/websocket"

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
	o := &websocket.DialOptions{HTTPClient: wswatch.WithoutRedirects(http.Client{Transport: t}), HTTPHeader: r.Header(), Subprotocols: r.Subprotocols}
	if len(r.Codings) > 0 {
		o.CompressionMode = websocket.CompressionNoContextTakeover
	}
	library, resp, err := websocket.Dial(ctx, r.URL.String(), o)
	switch {
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
	kind, reader, err := c.library.Reader(context.Background())
	within := err == nil
	if err == nil {
		message, err = c.request.ReadMessage(&c.buffer, reader)
		if c.observed.Failed() {
			// The library treats a compressed message as complete when the connection fails.
			err = io.EOF
		}
	}
	if e, ok := errors.AsType[websocket.CloseError](err); ok && !within {
		return false, nil, &wswatch.CloseFrame{Code: int(e.Code), Reason: e.Reason}
	}
	if err != nil {
		err = c.observed.ReceiveError(err, within)
	}
	return kind == websocket.MessageBinary, message, err
}

// WriteClose implements [wswatch.Conn].
func (c *conn) WriteClose(code int, reason string) {
	_ = c.library.Close(websocket.StatusCode(code), reason)
}

// Cut implements [wswatch.Conn].
func (c *conn) Cut() {
	connio.Cut(c.observed.Conn)
	_ = c.library.CloseNow()
}
