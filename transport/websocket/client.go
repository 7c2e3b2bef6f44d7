package websocket

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// A Client dials watches over WebSocket, each on its own HTTP/1.1 connection: ws for http URLs,
// and wss for https URLs. The zero value is ready to use. It is safe for concurrent use.
//
// A client answers the server's pings only during a call of Receive. If Receive is not called
// for longer than the server's ping interval, the server disconnects the client. A client sends
// no pings itself; use Request.Activity to detect a silent server.
type Client struct {
	transport.Network
	// HTTPClient sends the handshakes. If it is set, Network is not used. The RoundTripper must
	// support upgrades over HTTP/1.1, as an http.Transport does, also if it is wrapped by one that
	// passes on requests with their contexts, and responses with bodies that can be written.
	// Otherwise Dial returns an error of code Unsupported.
	HTTPClient *http.Client
	// Backend is the library to use. The zero value is Gorilla.
	Backend Backend
}

var _ transport.Client = (*Client)(nil)

// Name returns "websocket".
func (*Client) Name() string { return "websocket" }

// Dial opens a watch. It offers the subprotocol of the first of r.Framings, if that framing has
// one, and then the subprotocols in r.Header. It does not follow redirects.
//
// The server's subprotocol determines the framing. If it names no framing, the server's
// Content-Type determines it. If that names none of r.Framings, the type of each message
// determines its framing: text is JSON and binary is CBOR.
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
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "URL scheme " + strconv.Quote(r.URL.Scheme) + ": must be http or https",
		}
	}
	withMessages := *r
	withMessages.Framings = messageFramings(r.Framings)
	if len(withMessages.Framings) == 0 {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Message: "no framing of the request has a message form"}
	}
	conn, resp, err := c.handshake(ctx, &withMessages)
	if err != nil {
		return nil, err
	}
	var reader messageReader
	switch c.Backend {
	case Nhooyr:
		reader, err = newNhooyrReader(conn)
	default:
		reader, err = newGorillaReader(conn)
	}
	if err != nil {
		conn.cut()
		return nil, err
	}
	return newReceiver(ctx, conn, reader, resp.Header, &withMessages), nil
}

// messageFramings returns the framings that have a message form. If framings is nil, it returns
// JSON.
func messageFramings(framings []framing.Framer) []framing.Framer {
	if framings == nil {
		return []framing.Framer{framing.JSON{}}
	}
	return slices.DeleteFunc(slices.Clone(framings), func(f framing.Framer) bool {
		_, ok := f.(framing.MessageFramer)
		return !ok
	})
}

// handshake opens a WebSocket and returns its connection and the server's response. It does not
// use the libraries: they truncate the body of an error at 1 KiB, and gorilla accepts a
// subprotocol or extension that was not offered, and ignores ctx while it waits.
func (c *Client) handshake(ctx context.Context, r *transport.Request) (*conn, *http.Response, error) {
	req, key, err := newRequest(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	var used net.Conn // the last connection
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { used = i.Conn }}
	resp, err := transport.Do(c.handshakeClient(), req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		return nil, nil, err
	}
	if r.Activity != nil {
		r.Activity()
	}
	deflate, err := checkResponse(resp, key, req.Header)
	if err != nil {
		resp.Body.Close()
		return nil, nil, err
	}
	body, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || used == nil {
		resp.Body.Close()
		return nil, nil, &listwatch.Error{
			Code: listwatch.Unsupported, Message: "the RoundTripper of the http.Client hides the connection, which is needed after the upgrade",
		}
	}
	w := newConn(&upgradedConn{withoutTLS(used), body, r.Activity}, true, transport.DefaultWriteTimeout)
	w.validator = validator{maxMessage: int64(r.Limit), deflate: deflate}
	if r.Limit <= 0 {
		w.validator.maxMessage = framing.DefaultLimit
	}
	return w, resp, nil
}

// handshakeClient returns a client that follows no redirects.
func (c *Client) handshakeClient() *http.Client {
	var client http.Client
	if c.HTTPClient != nil {
		client = *c.HTTPClient
	} else {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		t := c.HTTPTransport(protocols)
		t.DisableKeepAlives = true // there is no second request
		client.Transport = t
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// newRequest returns the request of a handshake and its key.
func newRequest(ctx context.Context, r *transport.Request) (*http.Request, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL.String(), nil)
	if err != nil {
		return nil, "", &listwatch.Error{Code: listwatch.Invalid, Err: err}
	}
	offered := offeredSubprotocols(r.Header)
	if name := framing.SubprotocolOf(r.Framings[0]); name != "" && !slices.Contains(offered, name) {
		offered = append([]string{name}, offered...)
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
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

// checkResponse checks the rules of RFC 6455 section 4.1 for the response to a handshake.
// request holds the headers of the handshake. deflate reports whether messages may be
// compressed.
func checkResponse(resp *http.Response, key string, request http.Header) (deflate bool, err error) {
	if resp.StatusCode == http.StatusOK {
		return false, errBadResponse("the server answered 200 OK instead of upgrading to WebSocket")
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return false, transport.ResponseError(resp)
	}
	h := resp.Header
	chosen := h.Values("Sec-Websocket-Protocol")
	deflate, ok := agreesToDeflate(h)
	switch {
	case !hasToken(h, "Upgrade", "websocket") || !hasToken(h, "Connection", "upgrade"):
		return false, errBadResponse("the server switched to a protocol other than WebSocket")
	case h.Get("Sec-Websocket-Accept") != acceptKey(key):
		return false, errBadResponse("the server's Sec-WebSocket-Accept does not match the key")
	case !ok, deflate && request.Get("Sec-Websocket-Extensions") == "":
		return false, errBadResponse("the server selected an extension that was not offered")
	case len(chosen) > 1, len(chosen) == 1 && !slices.Contains(offeredSubprotocols(request), chosen[0]):
		return false, errBadResponse("the server selected a subprotocol that was not offered")
	}
	return deflate, nil
}

func errBadResponse(message string) error {
	return &listwatch.Error{Code: listwatch.Unsupported, Message: message}
}

// withoutTLS returns the connection below c that does not encrypt.
func withoutTLS(c net.Conn) net.Conn {
	for {
		t, ok := c.(*tls.Conn)
		if !ok {
			return c
		}
		c = t.NetConn()
	}
}

// An upgradedConn is the connection of a response that switched protocols. It reads and writes
// through the body of the response, which may have read ahead and implements TLS. It takes
// deadlines and addresses from the connection that was dialled.
type upgradedConn struct {
	net.Conn
	body     io.ReadWriteCloser
	activity func() // called whenever bytes arrive; may be nil
}

func (u *upgradedConn) Read(p []byte) (int, error) {
	n, err := u.body.Read(p)
	if n > 0 && u.activity != nil {
		u.activity()
	}
	return n, err
}

func (u *upgradedConn) Write(p []byte) (int, error) { return u.body.Write(p) }

// Close closes the connection without a TLS close_notify, which could block if the server does
// not read. The server already knows from the close frame that the connection ends.
func (u *upgradedConn) Close() error {
	err := u.Conn.Close()
	u.body.Close()
	return err
}
