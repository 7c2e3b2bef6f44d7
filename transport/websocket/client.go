package websocket

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A Client dials watches over WebSocket: ws for http, wss for https, always over HTTP/1.1 and one connection for each. The zero
// Client is ready. It is safe for concurrent use.
//
// It answers the server's pings while someone waits in Receive: whoever stays away for longer than the server pings is taken for
// dead. It sends no pings of its own: whoever reads notices a silent server by Request.Activity.
type Client struct {
	transport.Network
	// Backend is the library; zero: Gorilla.
	Backend Backend
}

var _ transport.Client = (*Client)(nil)

// Name returns "websocket".
func (*Client) Name() string { return "websocket" }

// Dial opens a stream. It offers one subprotocol, the one that names the first of r.Framings, where there is one, and those in
// r.Header. Redirects are not followed. The framing is the one that the server's choice of a subprotocol names, else that of its
// Content-Type, else what each message looks like: JSON for text, CBOR for binary.
//
// The handshake is done here and not by the libraries: they cut an error's body at 1 KiB, and gorilla neither refuses a subprotocol
// or an extension that was not asked for nor heeds ctx while it waits.
func (c *Client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	receiver, err := c.dial(ctx, r)
	switch {
	case err == nil:
		return receiver, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	e := transport.DialError(err)
	e.Op = "dial"
	return nil, e
}

func (c *Client) dial(ctx context.Context, r *transport.Request) (*receiver, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "the URL has scheme " + strconv.Quote(r.URL.Scheme) + ", want http or https"}
	}
	m := *r
	m.Framings = withMessages(r.Framings)
	if len(m.Framings) == 0 {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Message: "none of the framings has a message form"}
	}
	conn, resp, err := c.handshake(ctx, &m)
	if err != nil {
		return nil, err
	}
	var link link
	switch c.Backend {
	case Nhooyr:
		link, err = dialNhooyr(conn)
	default:
		link, err = dialGorilla(conn)
	}
	if err != nil {
		conn.cut()
		return nil, err
	}
	return newReceiver(ctx, conn, link, resp.Header, &m), nil
}

// withMessages returns those of framings that have a message form; nil stands for JSON.
func withMessages(framings []framing.Framer) []framing.Framer {
	if framings == nil {
		return []framing.Framer{framing.JSON{}}
	}
	return slices.DeleteFunc(slices.Clone(framings), func(f framing.Framer) bool {
		_, ok := f.(framing.MessageFramer)
		return !ok
	})
}

// handshake opens a connection that is a WebSocket from its next byte on.
func (c *Client) handshake(ctx context.Context, r *transport.Request) (*conn, *http.Response, error) {
	req, key, err := newRequest(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	t := c.HTTPTransport(protocols)
	var raw net.Conn // what was dialled last
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil && r.Activity != nil {
			c = &observed{c, r.Activity}
		}
		raw = c
		return c, err
	}
	t.DisableKeepAlives = true // there is no second request
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	deflate, err := checkResponse(resp, key, req.Header)
	if err != nil {
		resp.Body.Close()
		return nil, nil, err
	}
	body, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		resp.Body.Close()
		return nil, nil, &listwatch.Error{Code: listwatch.Unsupported, Message: "the connection can't be taken over"}
	}
	w := newConn(&tunnel{raw, body}, true, transport.DefaultWriteTimeout)
	w.gate.deflate = deflate
	w.gate.limit = int64(r.Limit)
	if r.Limit <= 0 {
		w.gate.limit = framing.DefaultLimit
	}
	return w, resp, nil
}

// newRequest returns the request of a handshake and its key.
func newRequest(ctx context.Context, r *transport.Request) (*http.Request, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL.String(), nil)
	if err != nil {
		return nil, "", &listwatch.Error{Code: listwatch.Invalid, Err: err}
	}
	offered := offers(r.Header)
	if name := subprotocolOf(r.Framings[0]); name != "" && !slices.Contains(offered, name) {
		offered = append([]string{name}, offered...)
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	key := base64.StdEncoding.EncodeToString(nonce[:])

	if r.Header != nil {
		req.Header = withoutHandshake(r.Header)
	}
	req.Header.Set("Accept", r.AcceptHeader())
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	req.Header.Set("Sec-Websocket-Version", "13")
	req.Header.Set("Sec-Websocket-Key", key)
	if len(offered) > 0 {
		req.Header.Set("Sec-Websocket-Protocol", strings.Join(offered, ", "))
	}
	if len(r.Codings) > 0 {
		req.Header.Set("Sec-Websocket-Extensions", agreedDeflate)
	}
	return req, key, nil
}

// checkResponse checks what RFC 6455 section 4.1 demands of the answer to a handshake with the headers asked, and returns whether
// messages may be compressed.
func checkResponse(resp *http.Response, key string, asked http.Header) (deflate bool, err error) {
	if resp.StatusCode == http.StatusOK {
		return false, badResponse("the server answered 200 OK instead of an upgrade")
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return false, transport.ResponseError(resp)
	}
	h := resp.Header
	chosen := h.Values("Sec-Websocket-Protocol")
	deflate, ok := agreesToDeflate(h)
	switch {
	case !hasToken(h, "Upgrade", "websocket") || !hasToken(h, "Connection", "upgrade"):
		return false, badResponse("the server switched to another protocol")
	case h.Get("Sec-Websocket-Accept") != acceptKey(key):
		return false, badResponse("Sec-WebSocket-Accept doesn't fit the key")
	case !ok, deflate && asked.Get("Sec-Websocket-Extensions") == "":
		return false, badResponse("the server chose an extension that was not offered")
	case len(chosen) > 1, len(chosen) == 1 && !slices.Contains(offers(asked), chosen[0]):
		return false, badResponse("the server chose a subprotocol that was not offered")
	}
	return deflate, nil
}

func badResponse(message string) error {
	return &listwatch.Error{Code: listwatch.Unsupported, Message: message}
}

// acceptKey returns what answers key: rfc6455#section-4.2.2.
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// An observed connection says when something has come.
type observed struct {
	net.Conn
	activity func()
}

func (o *observed) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	if n > 0 {
		o.activity()
	}
	return n, err
}

// A tunnel is the connection behind a response that switched protocols. Its body has read ahead and knows of TLS; deadlines
// and addresses are those of what was dialled.
type tunnel struct {
	net.Conn
	body io.ReadWriteCloser
}

func (t *tunnel) Read(p []byte) (int, error)  { return t.body.Read(p) }
func (t *tunnel) Write(p []byte) (int, error) { return t.body.Write(p) }

// Close closes the connection without a word to TLS, which could wait for a server that doesn't read: what there is to say is in
// the close frame.
func (t *tunnel) Close() error {
	err := t.Conn.Close()
	t.body.Close()
	return err
}
