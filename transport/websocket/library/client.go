package library

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// A Client dials watches like the Client of package websocket. The zero value is ready to use. It
// is safe for concurrent use.
type Client[L Library] struct {
	transport.Network
}

// Name returns "websocket".
func (*Client[L]) Name() string { return "websocket" }

// Dial opens a watch, as Dial of package websocket does.
func (c *Client[L]) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return wswatch.Dial(ctx, r, func(ctx context.Context, r *wswatch.Request) (wswatch.Conn, http.Header, error) {
		var library L
		return open(ctx, c.Network, r, library.Dial)
	})
}

func open(
	ctx context.Context, n transport.Network, r *wswatch.Request,
	dial func(context.Context, *Handshake) (ClientConn, *http.Response, error),
) (wswatch.Conn, http.Header, error) {
	c := &conn{request: r}
	// A library may ignore the end of ctx while it waits for the response.
	detachContext := context.AfterFunc(ctx, c.closeNetwork)
	library, resp, err := dial(ctx, &Handshake{
		URL: r.URL, Header: r.Header(), Subprotocols: r.Subprotocols, Compression: len(r.Codings) > 0,
		Limit: r.Limit, Transport: c.observedTransport(ctx, n),
	})
	c.library = library
	switch isOpen := detachContext(); {
	case isOpen && err == nil:
		return c, resp.Header, nil
	case err == nil:
		c.Cut()
		return nil, nil, ctx.Err()
	case resp == nil:
		return nil, nil, err
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return nil, nil, wswatch.ErrBadResponse(err.Error())
	}
	return nil, nil, transport.ResponseError(resp, r.Framings...)
}

// A conn is a client's end of a WebSocket, and the network connection below the library.
type conn struct {
	// Immutable after construction.
	library ClientConn
	request *wswatch.Request

	network atomic.Pointer[observedConn] // nil until it was dialed
	buffer  bytes.Buffer                 // owned by the caller of Next
}

// observedTransport returns a transport over n. Its connections are kept in c.network.
func (c *conn) observedTransport(ctx context.Context, n transport.Network) *http.Transport {
	dial := wswatch.HTTPTransport(n).DialContext
	n.Dial = func(_ context.Context, network, addr string) (net.Conn, error) {
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		observed := &observedConn{Conn: raw, activity: c.request.Activity}
		if c.network.Store(observed); ctx.Err() != nil {
			raw.Close()
		}
		return observed, nil
	}
	return wswatch.HTTPTransport(n)
}

func (c *conn) closeNetwork() {
	if n := c.network.Load(); n != nil {
		connio.Cut(n.Conn)
	}
}

// Next implements [wswatch.Conn].
func (c *conn) Next() (isBinary bool, message []byte, err error) {
	within := false
	isBinary, err = c.library.Next(func(r io.Reader) error {
		within = true
		return c.read(r)
	})
	failure := c.network.Load().failure.Load()
	switch f, isFrame := err.(*wswatch.CloseFrame); {
	case isFrame && !within:
		return false, nil, f
	case err != nil:
		return false, nil, receiveError(err, failure, within)
	case failure != nil:
		// nhooyr treats a compressed message as complete when the connection fails.
		return false, nil, wswatch.CutError(*failure, within)
	}
	return isBinary, c.buffer.Bytes(), nil
}

// read empties c.buffer and reads a message into it. If the message has more bytes than the limit,
// it returns a [*wswatch.Violation].
func (c *conn) read(message io.Reader) error {
	limit := c.request.Limit
	if c.buffer.Cap() > wswatch.MaxScratch {
		c.buffer = bytes.Buffer{}
	}
	c.buffer.Reset()
	if n, err := c.buffer.ReadFrom(io.LimitReader(message, max(limit, limit+1))); err != nil {
		return err
	} else if n > limit {
		return wswatch.ErrTooBig(limit)
	}
	return nil
}

// receiveError returns the error of Receive after a library has returned err. failure is the error
// that has ended the network connection, or nil. Then err usually means that the library has
// rejected a frame.
func receiveError(err error, failure *error, within bool) error {
	if _, ok := err.(*wswatch.Violation); ok {
		return err
	}
	if failure != nil {
		return wswatch.CutError(*failure, within)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return wswatch.CutError(err, within) // a TLS alert ended the connection
	}
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Err: err}
}

// WriteClose implements [wswatch.Conn].
func (c *conn) WriteClose(code int, reason string) { c.library.WriteClose(code, reason) }

// Cut implements [wswatch.Conn].
func (c *conn) Cut() {
	c.closeNetwork()
	c.library.Close()
}

// An observedConn is the network connection below a library and below TLS. It calls activity
// whenever bytes arrive. It also keeps the error that has ended reading, because libraries hide it.
type observedConn struct {
	net.Conn
	activity func() // may be nil
	failure  atomic.Pointer[error]
}

func (o *observedConn) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	if n > 0 && o.activity != nil {
		o.activity()
	}
	if err != nil {
		o.failure.Store(&err)
	}
	return n, err
}
