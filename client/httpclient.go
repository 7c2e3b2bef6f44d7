package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// newHTTPClient returns a copy of HTTPClient. If HTTPClient is nil, it returns a client over
// Network, which uses HTTP/2 if the server offers HTTP/2 during the TLS handshake.
func (r *Remote) newHTTPClient() *http.Client {
	if r.HTTPClient == nil {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
		return transport.HTTPClient(r.Network.HTTPTransport(protocols))
	}
	c := *r.HTTPClient
	if c.CheckRedirect == nil {
		c.CheckRedirect = transport.HTTPClient(nil).CheckRedirect
	}
	return &c
}

func (r *Remote) defaultTransports() []transport.Client {
	if c := r.HTTPClient; c != nil {
		return []transport.Client{anyVersion{c}, &websocket.Client{HTTPClient: c}}
	}
	h1 := []transport.Client{&chunked.Client{Network: r.Network}, &websocket.Client{Network: r.Network}}
	if u, err := url.Parse(r.URL); err == nil && u.Scheme == "https" {
		return append([]transport.Client{&h2.Client{Network: r.Network}}, h1...)
	}
	return h1
}

// An anyVersion opens watches over the version of HTTP that an http.Client and the server agree
// on. A RoundTripper offers no way to choose the version, so the client is one candidate, not one
// for each version.
type anyVersion struct{ *http.Client }

// Name implements [transport.Client].
func (anyVersion) Name() string { return "http" }

// Dial implements [transport.Client].
func (a anyVersion) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return transport.DialHTTP(ctx, a.Client, r, 0)
}
