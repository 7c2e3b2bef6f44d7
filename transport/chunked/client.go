package chunked

import (
	"context"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch/transport"
)

// A Client dials watches over HTTP/1.1, each on its own connection. The zero value is ready to
// use. It is safe for concurrent use, and must not be copied after the first Dial.
type Client struct {
	// Network connects to servers. Do not change it after the first Dial.
	transport.Network

	once sync.Once
	http *http.Client
}

var _ transport.Client = (*Client)(nil)

// Name returns "chunked".
func (c *Client) Name() string { return "chunked" }

// Dial implements [transport.Client]. It follows redirects; see [transport.HTTPClient].
func (c *Client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return transport.DialHTTP(ctx, c.client(), r, 1)
}

// CloseIdleConnections closes the connections that no watch uses. The Client remains usable.
func (c *Client) CloseIdleConnections() { c.client().CloseIdleConnections() }

func (c *Client) client() *http.Client {
	c.once.Do(func() {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		c.http = transport.HTTPClient(c.HTTPTransport(protocols))
	})
	return c.http
}
