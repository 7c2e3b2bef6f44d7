package harness

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch/internal/h2websocket"
)

// WatchRawIn is like WatchRaw for another framing. It skips the case if a server other than
// this module's does not offer the framing.
func (e *Env) WatchRawIn(mediaType, query string) *Response {
	e.Helper()
	a := e.WatchRaw(query, "Accept", mediaType)
	if a.Status == 406 && !e.Supports(InProcess) {
		e.Skipf("the server does not offer %s", mediaType)
	}
	a.WantAccepted()
	if got := a.Headers.Get("Content-Type"); got != mediaType && mediaType != SSEMediaType {
		e.Errorf("got Content-Type %q, want %s", got, mediaType)
	}
	return a
}

// SampleKey is the sample key in RFC 6455, section 1.3, and SampleAccept the matching
// Sec-WebSocket-Accept.
const (
	SampleKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	SampleAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// upgradeHeaders are the headers of a WebSocket handshake.
var upgradeHeaders = []string{
	"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", SampleKey,
}

// WatchRaw sends a watch request without a client library and returns the response. header
// consists of pairs of names and values, which are sent in order. For WebSocket, the handshake
// headers come first. A pair in header replaces the handshake header with the same name, and an
// empty value removes it.
func (e *Env) WatchRaw(query string, header ...string) *Response {
	e.Helper()
	return e.RequestRaw("GET", "?watch=1&"+query, header...)
}

// RequestRaw is like WatchRaw for any method and target. The target is a path, or a query
// of the collection's URL.
func (e *Env) RequestRaw(method, target string, header ...string) *Response {
	e.Helper()
	description := describeRequest(method, target, header)
	if e.Transport == "ws" {
		header = withDefaults(upgradeHeaders, header)
	}
	a := e.RequestOn(e.Connect(e.ALPN()...), method, target, header)
	a.Request = description
	return a
}

// describeRequest returns a request as text for messages, cut to 200 characters.
func describeRequest(method, target string, header []string) string {
	text := method + " " + target
	for i := 0; i < len(header); i += 2 {
		text += fmt.Sprintf(", %s: %q", header[i], header[i+1])
	}
	const maxLength = 200
	if len(text) > maxLength {
		text = text[:maxLength] + "..."
	}
	return text + ": "
}

// ListRaw sends a list request. It is a plain HTTP request on every transport, without a
// WebSocket handshake.
func (e *Env) ListRaw(query string, header ...string) *Response {
	e.Helper()
	a := e.RequestOn(e.Connect(e.ALPN()...), "GET", "?"+query, header)
	a.Request = describeRequest("GET", "?"+query, header)
	return a
}

// HTTPClient returns a client of net/http that keeps its connections. It uses HTTP/2 if the
// transport under test does, and otherwise HTTP/1.1.
func (e *Env) HTTPClient() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(e.Transport != "h2")
	protocols.SetHTTP2(e.Transport == "h2")
	protocols.SetUnencryptedHTTP2(e.Transport == "h2")
	t := e.Network.HTTPTransport(protocols)
	e.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// GetRaw is like ListRaw for another path.
func (e *Env) GetRaw(target string) *Response {
	e.Helper()
	return e.RequestOn(e.Connect(e.ALPN()...), "GET", target, nil)
}

// ALPN returns the protocols that a TLS client offers for the transport under test.
func (e *Env) ALPN() []string {
	if e.Transport == "h2" {
		return []string{"h2"}
	}
	return []string{"http/1.1"}
}

// RequestOn sends a request on c and reads the response headers.
func (e *Env) RequestOn(c net.Conn, method, target string, header []string) *Response {
	e.Helper()
	if e.Transport == "h2" {
		return e.RequestHTTP2(c, method, target, header)
	}
	target, header = e.complete(target, header)
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\n", method, target)
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			fmt.Fprintf(&text, "%s: %s\r\n", header[i], header[i+1])
		}
	}
	text.WriteString("\r\n")
	if _, err := io.WriteString(c, text.String()); err != nil {
		e.Fatal(err)
	}
	return e.readResponse(c, method)
}

// complete adds the collection's path to a target that is only a query, and adds the Host
// header and e.Header to header, unless header overrides them.
func (e *Env) complete(target string, header []string) (string, []string) {
	if target == "" || target[0] == '?' {
		target = e.URL.EscapedPath() + target
	}
	return target, withDefaults(append([]string{"Host", e.URL.Host}, HeaderPairs(e.Header)...), header)
}

// withDefaults returns header, preceded by the defaults that it does not override.
func withDefaults(defaults, header []string) []string {
	var all []string
	for i := 0; i < len(defaults); i += 2 {
		overridden := false
		for j := 0; j < len(header); j += 2 {
			overridden = overridden || strings.EqualFold(header[j], defaults[i])
		}
		if !overridden {
			all = append(all, defaults[i:i+2]...)
		}
	}
	return append(all, header...)
}

// A deadlineConn limits the time of each read and write.
type deadlineConn struct {
	net.Conn
	limit time.Duration
}

func (d *deadlineConn) Read(p []byte) (int, error) {
	_ = d.SetReadDeadline(time.Now().Add(d.limit)) // if it fails, so does Read
	return d.Conn.Read(p)
}

func (d *deadlineConn) Write(p []byte) (int, error) {
	_ = d.SetWriteDeadline(time.Now().Add(d.limit)) // if it fails, so does Write
	return d.Conn.Write(p)
}

// Connect opens a connection to the server. If the variant opens WebSockets over HTTP/2, the
// connection leads to a gateway that does so. If the server uses TLS, the TLS handshake offers the
// given protocols.
func (e *Env) Connect(protocols ...string) net.Conn {
	e.Helper()
	if e.OpensOverHTTP2() {
		return e.dial(e.dialOverHTTP2())
	}
	return e.ConnectDirectly(protocols...)
}

// ConnectDirectly is like Connect, but uses no gateway if WebSockets are opened over HTTP/2.
func (e *Env) ConnectDirectly(protocols ...string) net.Conn {
	e.Helper()
	dial := e.Network.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c := e.dial(dial)
	if !e.UsesTLS() {
		return c
	}
	config := e.Network.TLS.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName = e.URL.Hostname()
	}
	config.NextProtos = protocols
	secure := tls.Client(c, config)
	if err := secure.Handshake(); err != nil {
		e.Fatal(err)
	}
	return secure
}

// dial calls the given dial function for the server. The connection has deadlines, so that no read
// or write blocks forever.
func (e *Env) dial(dial func(ctx context.Context, network, addr string) (net.Conn, error)) net.Conn {
	e.Helper()
	c, err := dial(context.Background(), "tcp", e.DialAddress())
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { c.Close() })
	if e.Setup.FakeTime {
		_ = c.SetDeadline(time.Now().Add(e.Patience()))
	} else {
		// Limit each read and write instead of the whole connection, because a case may take
		// long on a slow machine.
		c = &deadlineConn{c, e.Patience()}
	}
	return c
}

// dialOverHTTP2 returns a function that connects to a gateway. The gateway opens WebSockets over
// HTTP/2, and uses TLS if the server does.
func (e *Env) dialOverHTTP2() func(ctx context.Context, network, addr string) (net.Conn, error) {
	n := e.Network
	switch {
	case !e.UsesTLS():
		n.TLS = nil
	case n.TLS == nil:
		n.TLS = new(tls.Config)
	}
	return h2websocket.Dial(n)
}

// HeaderPairs returns the headers of h as a list of alternating names and values.
func HeaderPairs(h http.Header) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			all = append(all, name, value)
		}
	}
	return all
}

// Base64URL returns p in the base64 form that the HTTP2-Settings header uses.
func Base64URL(p []byte) string { return base64.RawURLEncoding.EncodeToString(p) }
