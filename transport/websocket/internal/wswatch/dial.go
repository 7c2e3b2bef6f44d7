package wswatch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// Dial implements Dial of a [transport.Client]. The function dial opens the connection and returns
// the headers of the response.
func Dial(
	ctx context.Context, r *transport.Request, dial func(context.Context, *Request) (Conn, http.Header, error),
) (transport.Receiver, error) {
	request, err := newRequest(r)
	if err == nil {
		var c Conn
		var h http.Header
		if c, h, err = dial(ctx, request); err == nil {
			if err = request.checkSubprotocol(h); err == nil {
				return newReceiver(ctx, c, h, request), nil
			}
			c.Cut()
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	e := transport.DialError(err)
	e.Op = "dial"
	return nil, e
}

// HTTPTransport returns a transport over n for a handshake.
func HTTPTransport(n transport.Network) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	t := n.HTTPTransport(protocols)
	t.DisableKeepAlives = true // there is no second request
	return t
}

// WithoutRedirects returns a copy of c that follows no redirects.
func WithoutRedirects(c http.Client) *http.Client {
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// An Observed is the network connection below the WebSocket library of a client, and below TLS. It
// calls activity whenever bytes arrive. It also keeps the error that ended reading, because the
// libraries hide this error.
type Observed struct {
	net.Conn
	activity func() // may be nil
	failure  atomic.Pointer[error]
}

// ObservedTransport returns a transport over n for the handshake of r. The function observed
// returns the connection of that transport, or nil before the connection was dialed.
func ObservedTransport(n transport.Network, r *Request) (t *http.Transport, observed func() *Observed) {
	t = HTTPTransport(n)
	dial := t.DialContext
	var conn *Observed
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn = &Observed{Conn: c, activity: r.Activity}
		return conn, nil
	}
	return t, func() *Observed { return conn }
}

// Read implements net.Conn.
func (o *Observed) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	if n > 0 && o.activity != nil {
		o.activity()
	}
	if err != nil {
		o.failure.Store(&err)
	}
	return n, err
}

// Failed reports whether a read has failed.
func (o *Observed) Failed() bool { return o.failure.Load() != nil }

// ReceiveError returns the error of Receive after a library has returned err. withinMessage is true
// if the library was reading a message. If the connection has not ended, err means that the library
// has rejected a frame.
func (o *Observed) ReceiveError(err error, withinMessage bool) error {
	if _, ok := err.(*Violation); ok {
		return err
	}
	if failure := o.failure.Load(); failure != nil {
		return CutError(*failure, withinMessage)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return CutError(err, withinMessage) // a TLS alert ended the connection
	}
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Err: err}
}
