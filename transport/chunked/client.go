package chunked

import (
	"context"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch/transport"
)

// A Client dials streams over HTTP/1.1, each on a connection of its own. The zero Client is ready; it must not be copied after the
// first Dial.
type Client struct {
	// Network is how servers are reached.
	transport.Network

	once sync.Once
	http *http.Client
}

var _ transport.Client = (*Client)(nil)

// Name returns "chunked".
func (c *Client) Name() string { return "chunked" }

// Dial is that of [transport.Client]. It follows redirects; see [transport.HTTPClient].
func (c *Client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return transport.DialHTTP(ctx, c.client(), r, 1)
}

// CloseIdleConnections closes the connections that no stream uses. The Client can be used after it.
func (c *Client) CloseIdleConnections() { c.client().CloseIdleConnections() }

func (c *Client) client() *http.Client {
	c.once.Do(func() {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		c.http = transport.HTTPClient(c.HTTPTransport(protocols))
	})
	return c.http
}
