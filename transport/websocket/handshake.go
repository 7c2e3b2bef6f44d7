package websocket

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

const op = "upgrade to WebSocket"

// checkRequest checks what RFC 6455 section 4.2.1 demands of a handshake, before a library sees it: the libraries check different
// things and answer by themselves. h gets the headers that an error response must bear.
func checkRequest(r *http.Request, h http.Header, origins []string) error {
	if r.Method != http.MethodGet {
		h.Set("Allow", http.MethodGet)
		return refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "the method is %s, want GET", r.Method)
	}
	if v := r.Header.Values("Sec-Websocket-Version"); len(v) != 1 || strings.TrimSpace(v[0]) != "13" {
		// rfc6455#section-4.4; a 426 must say what to upgrade to: rfc9110#section-15.5.22.
		h.Set("Sec-Websocket-Version", "13")
		h.Set("Upgrade", "websocket")
		h.Set("Connection", "Upgrade")
		return refuse(http.StatusUpgradeRequired, "UpgradeRequired", "Sec-WebSocket-Version is %q, want 13", v)
	}
	if k := r.Header.Values("Sec-Websocket-Key"); len(k) != 1 || !validKey(k[0]) {
		return refuse(http.StatusBadRequest, "BadRequest", "Sec-WebSocket-Key is %q, want 16 bytes in base64", k)
	}
	if r.ContentLength != 0 {
		// A body would be taken for frames.
		return refuse(http.StatusBadRequest, "BadRequest", "the request has a body, want none")
	}
	if !transport.OriginAllowed(r, origins) {
		return refuse(http.StatusForbidden, "Forbidden", "origin %q may not watch here", r.Header.Values("Origin"))
	}
	return nil
}

// refuse returns what is wrong with a handshake.
func refuse(status int, reason, format string, args ...any) error {
	return &listwatch.Error{
		Code: listwatch.CodeOfHTTP(status), Op: op, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func validKey(key string) bool {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key))
	return err == nil && len(b) == 16
}

// hasToken reports whether the comma-separated lists of a header hold token, in any case.
func hasToken(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for t := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}

// A takeover is what a library is given in place of a ResponseWriter: the connection has been taken over already, so that
// where that can't be done the error is answered by who knows how.
type takeover struct {
	header http.Header // what the 101 is to bear beside the headers of the handshake
	conn   *conn
	buffer *bufio.ReadWriter
}

// takeOver takes the connection of w. Bytes that the client sent behind its request are kept.
func takeOver(w http.ResponseWriter, o transport.Options) (*takeover, error) {
	c, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Op: op, Status: http.StatusNotImplemented, Reason: "NotImplemented",
			Message: "the connection can't be taken over", Err: err,
		}
	}
	connio.TuneTCP(c)
	t := &takeover{header: withoutHandshake(w.Header()), conn: newConn(c, false, o.WriteTimeout), buffer: buffer}
	t.conn.gate = gate{fromClient: true, limit: maxInbound}
	if n := buffer.Reader.Buffered(); n > 0 {
		early, _ := buffer.Reader.Peek(n)
		t.conn.prefix = append([]byte(nil), early...)
	}
	buffer.Reader.Reset(t.conn)
	buffer.Writer.Reset(t.conn)
	return t, nil
}

// withoutHandshake returns a copy of h without what belongs to the handshake, or to a body, which it has none of.
func withoutHandshake(h http.Header) http.Header {
	h = h.Clone()
	if h == nil {
		return http.Header{}
	}
	for name := range h {
		switch {
		case strings.HasPrefix(name, "Sec-Websocket-"), strings.HasPrefix(name, http.TrailerPrefix):
			delete(h, name)
		case name == "Connection", name == "Upgrade", name == "Content-Length", name == "Transfer-Encoding", name == "Trailer":
			delete(h, name)
		}
	}
	return h
}

// Header returns the headers of the response.
func (t *takeover) Header() http.Header { return t.header }

// WriteHeader writes the head of the response.
func (t *takeover) WriteHeader(status int) {
	w := t.buffer.Writer
	fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = t.header.Write(w)
	_, _ = w.WriteString("\r\n")
	_ = w.Flush() // what failed here fails the first read, too
}

// Write swallows what a library says to a request that it doesn't like: there is none left after checkRequest.
func (t *takeover) Write(p []byte) (int, error) { return len(p), nil }

// Hijack returns the connection.
func (t *takeover) Hijack() (net.Conn, *bufio.ReadWriter, error) { return t.conn, t.buffer, nil }
