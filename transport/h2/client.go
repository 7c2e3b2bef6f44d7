package h2

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// A Client dials streams over HTTP/2: by ALPN for https, with prior knowledge for http. Streams share connections, on which nothing
// else runs; when a server's limit of streams is reached another connection is opened. The zero Client is ready; it must not be
// copied after the first Dial.
type Client struct {
	// Network is how servers are reached.
	transport.Network
	// PingInterval is the silence on a connection after which it is pinged, to find out that the server vanished. Zero:
	// [transport.DefaultPingInterval]; negative: no pings.
	PingInterval time.Duration

	once      sync.Once
	http      *http.Client
	greetings greetings
}

var _ transport.Client = (*Client)(nil)

// streamBuffer is how many bytes of one stream may wait to be read. net/http's own figure, 4 MiB, would let a reader that
// stopped look healthy for that long.
const streamBuffer = 256 << 10

// Name returns "h2".
func (c *Client) Name() string { return "h2" }

// Dial is that of [transport.Client]. It follows redirects; see [transport.HTTPClient].
func (c *Client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	receiver, err := transport.DialHTTP(ctx, c.client(), r, 2)
	if err := c.greetings.explain(address(r.URL), err); err != nil {
		return nil, err
	}
	return receiver, nil
}

// address returns the host and port that net/http dials for u.
func address(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// CloseIdleConnections closes the connections that no stream uses. The Client can be used after it.
func (c *Client) CloseIdleConnections() { c.client().CloseIdleConnections() }

func (c *Client) client() *http.Client {
	c.once.Do(func() {
		protocols := new(http.Protocols)
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(true)
		t := c.HTTPTransport(protocols)
		t.DialContext = c.greetings.watch(t.DialContext)
		ping := transport.Options{PingInterval: c.PingInterval}.PingIntervalOrDefault()
		t.HTTP2 = &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamBuffer, WriteByteTimeout: transport.DefaultWriteTimeout,
			SendPingTimeout: max(0, ping), PingTimeout: max(0, min(ping, 15*time.Second)),
		}
		c.http = transport.HTTPClient(t)
	})
	return c.http
}
