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

// A Client dials watches over HTTP/2: with ALPN for https URLs, and with prior knowledge for
// http URLs. Watches share connections, which the client uses for nothing else. When a
// connection has reached the server's limit of streams, the client opens another one. The zero
// value is ready to use. It is safe for concurrent use, and must not be copied after the first
// Dial.
type Client struct {
	// Network connects to servers. Do not change it after the first Dial.
	transport.Network
	// PingInterval is the idle time after which the client pings a connection, to detect a
	// vanished server. If zero, [transport.DefaultPingInterval] is used. A negative value
	// disables pings.
	PingInterval time.Duration

	once     sync.Once
	http     *http.Client
	detector http1Detector
}

var _ transport.Client = (*Client)(nil)

// streamBuffer is the maximum number of unread bytes of a watch. With the default of
// net/http, 4 MiB, the server would notice too late that a client does not read.
const streamBuffer = 256 << 10

// Name returns "h2".
func (c *Client) Name() string { return "h2" }

// Dial implements [transport.Client]. It follows redirects; see [transport.HTTPClient].
func (c *Client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	receiver, err := transport.DialHTTP(ctx, c.client(), r, 2)
	if err := c.detector.explain(address(r.URL), err); err != nil {
		return nil, err
	}
	return receiver, nil
}

// address returns the address that net/http dials for u.
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

// CloseIdleConnections closes the connections that no watch uses. The Client remains usable.
func (c *Client) CloseIdleConnections() { c.client().CloseIdleConnections() }

func (c *Client) client() *http.Client {
	c.once.Do(func() {
		protocols := new(http.Protocols)
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(true)
		t := c.HTTPTransport(protocols)
		t.DialContext = c.detector.observe(t.DialContext)
		ping := transport.Options{PingInterval: c.PingInterval}.PingIntervalOrDefault()
		t.HTTP2 = &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamBuffer, WriteByteTimeout: transport.DefaultWriteTimeout,
			SendPingTimeout: max(0, ping), PingTimeout: max(0, min(ping, 15*time.Second)),
		}
		c.http = transport.HTTPClient(t)
	})
	return c.http
}
