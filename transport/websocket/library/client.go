package library

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// A ClientConn is a client's end of a WebSocket. One goroutine reads. Any goroutine may call
// WriteClose and Close.
type ClientConn interface {
	// Next waits for the next message and passes it to read. It answers pings and close frames.
	// The error is that of read, or the result of [Closed] if the server has sent a close frame.
	Next(read func(message io.Reader) error) (isBinary bool, err error)
	// WriteClose writes a close frame within about a second.
	WriteClose(code int, reason string)
	// Close releases the resources of the library. The connection is closed before.
	Close()
}

// A Handshake describes a WebSocket to open.
type Handshake struct {
	// URL has the scheme http or https.
	URL *url.URL
	// Header has the headers of the request, except for the headers that a library sets.
	Header http.Header
	// Subprotocols are the subprotocols to offer.
	Subprotocols []string
	// Compression is true if the client offers permessage-deflate, without context takeover.
	Compression bool
	// Limit is the maximum number of bytes of a message.
	Limit int64
	// Transport opens the connection. If DialTLSContext is nil, an https URL needs DialContext and
	// TLSClientConfig.
	Transport *http.Transport
}

// Closed returns the error for a close frame of the server.
func Closed(code int, reason string) error { return &wswatch.CloseFrame{Code: code, Reason: reason} }

// Dial opens a watch, as Dial of package websocket does. open opens the WebSocket and returns the
// response to the handshake, also with an error if the server has responded. It must not follow
// redirects.
func Dial(
	ctx context.Context, n transport.Network, r *transport.Request,
	open func(context.Context, *Handshake) (ClientConn, *http.Response, error),
) (transport.Receiver, error) {
	return wswatch.Dial(ctx, r, func(ctx context.Context, r *wswatch.Request) (wswatch.Conn, http.Header, error) {
		c := &conn{request: r}
		// A library may ignore the end of ctx while it waits for the response.
		detachContext := context.AfterFunc(ctx, c.closeNetwork)
		library, resp, err := open(ctx, &Handshake{
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
		return nil, nil, transport.ResponseError(resp)
	})
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

// Read implements net.Conn.
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
