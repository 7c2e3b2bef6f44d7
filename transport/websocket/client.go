package websocket

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
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
	// support upgrades over HTTP/1.1, as an http.Transport does. A RoundTripper that wraps another
	// one must pass on the context of the request, and return the response body as an io.Writer.
	// Otherwise Dial returns an error of code Unsupported.
	HTTPClient *http.Client
}

var _ transport.Client = (*Client)(nil)

// Name returns "websocket".
func (*Client) Name() string { return "websocket" }

// Dial opens a watch. It offers the subprotocol of the first of r.Framings, if that framing has
// one, and then the subprotocols in r.Header. It does not follow redirects.
//
// The server's subprotocol determines the framing. If the subprotocol names no framing, the
// server's Content-Type determines the framing. If the Content-Type names none of r.Framings, the
// type of each message determines its framing: text is JSON and binary is CBOR.
func (c *Client) Dial(ctx context.Context, r *transport.Request) (transport.Receiver, error) {
	return wswatch.Dial(ctx, r, c.dial)
}

func (c *Client) dial(ctx context.Context, r *wswatch.Request) (wswatch.Conn, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL.String(), nil)
	if err != nil {
		return nil, nil, &listwatch.Error{Code: listwatch.Invalid, Err: err}
	}
	key := addHandshake(req, r)
	var used net.Conn // the last connection that net/http has used
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { used = i.Conn }}
	client := c.HTTPClient
	if client == nil {
		client = &http.Client{Transport: wswatch.HTTPTransport(c.Network)}
	}
	resp, err := transport.Do(wswatch.WithoutRedirects(*client), req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		return nil, nil, err
	}
	if r.Activity != nil {
		r.Activity()
	}
	agreed, err := checkResponse(resp, key, r)
	if err != nil {
		resp.Body.Close()
		return nil, nil, err
	}
	body, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || used == nil {
		resp.Body.Close()
		return nil, nil, &listwatch.Error{
			Code: listwatch.Unsupported,
			Message: "the RoundTripper of the http.Client hides the connection, " +
				"which is needed after the upgrade",
		}
	}
	return &clientConn{
		conn: used, body: body, request: r, keepsHistory: agreed.sharesHistory,
		frames: newFrameReader(false, agreed.deflate, r.Limit),
		buffer: make([]byte, clientBuffer), writing: make(chan struct{}, 1),
	}, resp.Header, nil
}

// addHandshake sets the headers of a handshake and returns its key.
func addHandshake(req *http.Request, r *wswatch.Request) (key string) {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	key = base64.StdEncoding.EncodeToString(nonce[:])
	h := r.Header()
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	h.Set("Sec-Websocket-Version", "13")
	h.Set("Sec-Websocket-Key", key)
	if len(r.Subprotocols) > 0 {
		h.Set("Sec-Websocket-Protocol", strings.Join(r.Subprotocols, ", "))
	}
	if len(r.Codings) > 0 {
		h.Set("Sec-Websocket-Extensions", sharedDeflate)
	}
	req.Header = h
	return key
}

// checkResponse checks the rules of RFC 6455 section 4.1 for the response to a handshake.
func checkResponse(resp *http.Response, key string, r *wswatch.Request) (agreed agreement, err error) {
	if resp.StatusCode == http.StatusOK {
		return agreed, wswatch.ErrBadResponse("the server answered 200 OK instead of upgrading to WebSocket")
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return agreed, transport.ResponseError(resp, r.Framings...)
	}
	h := resp.Header
	agreed, ok := parseAgreement(h)
	switch {
	case !httpheader.HasToken(h, "Upgrade", "websocket") || !httpheader.HasToken(h, "Connection", "upgrade"):
		return agreed, wswatch.ErrBadResponse("the server switched to a protocol other than WebSocket")
	case h.Get("Sec-Websocket-Accept") != acceptKey(key):
		return agreed, wswatch.ErrBadResponse("the server's Sec-WebSocket-Accept does not match the key")
	case !ok, agreed.deflate && len(r.Codings) == 0:
		return agreed, wswatch.ErrBadResponse("the server selected an extension that was not offered")
	}
	return agreed, nil
}
