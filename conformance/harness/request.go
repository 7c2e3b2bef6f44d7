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
)

// WatchRawIn is watch in another framing. A server that is not ours need not have it.
func (e *Env) WatchRawIn(mediaType, query string) *Response {
	e.Helper()
	a := e.WatchRaw(query, "Accept", mediaType)
	if a.Status == 406 && !e.Can(InProcess) {
		e.Skipf("the server does not offer %s", mediaType)
	}
	a.WantAccepted()
	if got := a.Headers.Get("Content-Type"); got != mediaType && mediaType != SSEMediaType {
		e.Errorf("got Content-Type %q, want %s", got, mediaType)
	}
	return a
}

// sampleKey and its answer are those of RFC 6455, section 1.3.
const (
	SampleKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	SampleAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// upgradeHeaders is what a WebSocket handshake has beside the request line.
var upgradeHeaders = []string{
	"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", SampleKey,
}

// WatchRaw sends the request of a watch by hand, on e's transport. header are pairs, which go out in order; on ws the headers of a sound
// handshake come first, but for those named in header, of which an empty value is not sent.
func (e *Env) WatchRaw(query string, header ...string) *Response {
	e.Helper()
	return e.RequestRaw("GET", "?watch=1&"+query, header...)
}

// RequestRaw is watch for any method and target: a path, or the query of one for the collection.
func (e *Env) RequestRaw(method, target string, header ...string) *Response {
	e.Helper()
	asked := describeRequest(method, target, header)
	if e.Transport == "ws" {
		header = withDefaults(upgradeHeaders, header)
	}
	a := e.RequestOn(e.Connect(e.ALPN()...), method, target, header)
	a.Request = asked
	return a
}

// describeRequest puts a request into words; a long one is cut short.
func describeRequest(method, target string, header []string) string {
	text := method + " " + target
	for i := 0; i < len(header); i += 2 {
		text += fmt.Sprintf(", %s: %q", header[i], header[i+1])
	}
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text + ": "
}

// ListRaw asks for a list, for which no transport but HTTP itself is needed.
func (e *Env) ListRaw(query string, header ...string) *Response {
	e.Helper()
	a := e.RequestOn(e.Connect(e.ALPN()...), "GET", "?"+query, header)
	a.Request = describeRequest("GET", "?"+query, header)
	return a
}

// GetRaw is list for another path.
func (e *Env) GetRaw(target string) *Response {
	e.Helper()
	return e.RequestOn(e.Connect(e.ALPN()...), "GET", target, nil)
}

// ALPN returns the protocols that a TLS handshake offers for the tested transport.
func (e *Env) ALPN() []string {
	if e.Transport == "h2" {
		return []string{"h2"}
	}
	return []string{"http/1.1"}
}

// RequestOn sends a request on c and reads the response up to its body.
func (e *Env) RequestOn(c net.Conn, method, target string, header []string) *Response {
	e.Helper()
	if target == "" || target[0] == '?' {
		target = e.URL.EscapedPath() + target
	}
	header = withDefaults(append([]string{"Host", e.URL.Host}, HeaderPairs(e.Header)...), header)
	if e.Transport == "h2" {
		return e.requestHTTP2(c, method, target, header)
	}
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

// withDefaults returns defaults, without those that header names, and then header.
func withDefaults(defaults, header []string) []string {
	var all []string
	for i := 0; i < len(defaults); i += 2 {
		named := false
		for j := 0; j < len(header); j += 2 {
			named = named || strings.EqualFold(header[j], defaults[i])
		}
		if !named {
			all = append(all, defaults[i:i+2]...)
		}
	}
	return append(all, header...)
}

// Connect opens a connection; where the site is a secure one, with TLS that offers protocols.
func (e *Env) Connect(protocols ...string) net.Conn {
	e.Helper()
	dial := e.Network.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c, err := dial(context.Background(), "tcp", e.DialAddress())
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(e.Patience()))
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

// HeaderPairs returns the headers of h as names and values in turn.
func HeaderPairs(h http.Header) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			all = append(all, name, value)
		}
	}
	return all
}

// Token68 is base64 as HTTP2-Settings has it.
func Token68(p []byte) string { return base64.RawURLEncoding.EncodeToString(p) }
