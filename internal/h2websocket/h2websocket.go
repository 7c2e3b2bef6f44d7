// Package h2websocket lets tests open WebSockets over HTTP/2 (RFC 8441) with clients for HTTP/1.1.
//
// [Dial] returns connections to a gateway in this process, which translates between HTTP/1.1 and
// HTTP/2 as a proxy does. The bytes of a WebSocket pass unchanged. [NewClient] makes a client of
// package transport use the gateway.
package h2websocket

//lint:file-ignore SA1019 the clients of net/http cannot send an extended CONNECT

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
)

// NewClient returns a client over n that opens each WebSocket on an HTTP/2 connection of its own.
// newClient returns a client for HTTP/1.1.
func NewClient(n transport.Network, newClient func(transport.Network) transport.Client) transport.Client {
	return &client{n, newClient}
}

type client struct {
	network   transport.Network
	newClient func(transport.Network) transport.Client
}

// Name implements [transport.Client].
func (c *client) Name() string { return c.newClient(c.network).Name() }

// Dial implements [transport.Client]. The connection to the gateway needs no TLS, because the
// gateway uses TLS to the server.
func (c *client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	request, u := *r, *r.URL
	request.URL = &u
	n := c.network
	if u.Scheme == "http" {
		n.TLS = nil
	} else if n.TLS == nil {
		n.TLS = &tls.Config{ServerName: u.Hostname()}
	}
	u.Scheme = "http"
	return c.newClient(transport.Network{Dial: Dial(n)}).Dial(ctx, &request)
}

// Dial returns a function that opens an HTTP/2 connection over n, and starts a gateway to it. The
// function returns a connection to the gateway, for HTTP/1.1 in clear text. The HTTP/2 connection
// uses TLS if n.TLS is not nil. Closing the returned connection also closes the HTTP/2 connection.
func Dial(n transport.Network) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := n.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		g := &gateway{authority: addr, scheme: "http"}
		if n.TLS != nil {
			config := n.TLS.Clone()
			config.NextProtos = []string{"h2"}
			if config.ServerName == "" {
				config.ServerName, _, _ = net.SplitHostPort(addr)
			}
			secure := tls.Client(conn, config)
			if err := secure.HandshakeContext(ctx); err != nil {
				conn.Close()
				return nil, err
			}
			conn, g.scheme = secure, "https"
		}
		// The window is small, so that the server notices soon that the client does not read.
		config := &http.HTTP2Config{MaxReceiveBufferPerStream: 128 << 10}
		t, err := http2.ConfigureTransports(&http.Transport{HTTP2: config})
		if err == nil {
			g.server, err = t.NewClientConn(conn)
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
		near, far := memnet.Pipe()
		g.client = far
		go g.serve() // until either connection ends
		return clientEnd{near, far}, nil
	}
}

// A clientEnd is the client's end of the connection to a gateway.
type clientEnd struct {
	*memnet.Conn
	gateway *memnet.Conn
}

// Close lets the gateway read the bytes written before. If this end has unread bytes, closing the
// memnet.Conn would reset the connection and discard them.
func (c clientEnd) Close() error {
	_ = c.SetReadDeadline(longAgo)
	_ = c.gateway.SetWriteDeadline(longAgo)
	return c.CloseWrite()
}

var longAgo = time.Unix(1, 0)

// A gateway passes the requests of a client to a server.
type gateway struct {
	client            *memnet.Conn
	server            *http2.ClientConn
	scheme, authority string
}

func (g *gateway) serve() {
	defer g.server.Close()
	defer g.client.Close()
	in := bufio.NewReader(g.client)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		isUpgrade := r.Method == http.MethodGet && httpheader.RequestsWebSocket(r)
		r.URL.Scheme, r.URL.Host, r.RequestURI = g.scheme, g.authority, ""
		key := r.Header.Get("Sec-Websocket-Key")
		for _, name := range []string{"Connection", "Upgrade", "Keep-Alive", "Transfer-Encoding", "Sec-Websocket-Key"} {
			r.Header.Del(name)
		}
		if isUpgrade {
			r.Method, r.ContentLength, r.Body = http.MethodConnect, -1, requestBody{in, g.client}
			r.Header[":protocol"] = []string{"websocket"}
		}
		resp, err := g.server.RoundTrip(r)
		if err != nil {
			g.client.Reset()
			return
		}
		if isUpgrade && resp.StatusCode == http.StatusOK {
			g.tunnel(resp, key)
			return
		}
		resp.Proto, resp.ProtoMajor, resp.ProtoMinor, resp.Close = "HTTP/1.1", 1, 1, isUpgrade
		err = resp.Write(g.client)
		resp.Body.Close()
		if err != nil || resp.Close {
			return
		}
	}
}

// tunnel copies the server's bytes to the client. The client's bytes reach the server through the
// body of the request. However the stream ends, the client receives all bytes that have arrived,
// and then the end of the connection.
func (g *gateway) tunnel(resp *http.Response, key string) {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	resp.Header.Set("Connection", "Upgrade")
	resp.Header.Set("Upgrade", "websocket")
	resp.Header.Set("Sec-Websocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
	_, err := io.WriteString(g.client, "HTTP/1.1 101 Switching Protocols\r\n")
	err = errors.Join(err, resp.Header.Write(g.client))
	if err == nil {
		_, err = io.WriteString(g.client, "\r\n")
	}
	if err == nil {
		_, err = io.Copy(g.client, resp.Body)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // the client has closed its end
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	resp.Body.Close()
	_ = g.client.CloseWrite()
	_ = g.client.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, g.client) // closing with unread bytes would reset the connection
}

// A requestBody reads the bytes that the client of a tunnel sends.
type requestBody struct {
	io.Reader
	client *memnet.Conn
}

// Close interrupts Read. Otherwise the stream would stay open until the client sends something.
func (b requestBody) Close() error { return b.client.SetReadDeadline(longAgo) }
