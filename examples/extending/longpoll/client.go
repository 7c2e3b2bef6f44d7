package longpoll

import (
	"context"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch/transport"
)

// A Client is the client half of the transport. Each stream is one poll. The zero value is ready to
// use. A Client must not be copied after the first Dial.
type Client struct {
	// Network connects to servers. Do not change it after the first Dial.
	transport.Network

	once sync.Once
	http *http.Client
}

var _ transport.Client = (*Client)(nil)

// Name implements [transport.Client].
func (c *Client) Name() string { return "longpoll" }

// Dial implements [transport.Client].
func (c *Client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	poll := *r
	poll.Header = r.Header.Clone()
	if poll.Header == nil {
		poll.Header = http.Header{}
	}
	poll.Header.Set(pollHeader, "1")
	return transport.DialHTTP(ctx, c.client(), &poll, 1)
}

// CloseIdleConnections closes the connections that no poll uses.
func (c *Client) CloseIdleConnections() { c.client().CloseIdleConnections() }

func (c *Client) client() *http.Client {
	c.once.Do(func() {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		c.http = transport.HTTPClient(c.HTTPTransport(protocols))
	})
	return c.http
}
