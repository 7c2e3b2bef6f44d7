package wswatch

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch/transport"
)

// Dial implements Dial of a [transport.Client]. dial opens the connection and returns the headers
// of the response.
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
	return nil, transport.DialError(ctx, "dial", err)
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
