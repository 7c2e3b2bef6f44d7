package websocket

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

const opUpgrade = "upgrade to WebSocket"

// checkRequest checks the rules of RFC 6455 section 4.2.1 for a handshake before a library sees
// it, because the libraries check different rules and answer by themselves. It adds to h the
// headers that an error response must have.
func checkRequest(r *http.Request, h http.Header, allowOrigins []string) error {
	if r.Method != http.MethodGet {
		h.Set("Allow", http.MethodGet)
		return refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "method %s: must be GET", r.Method)
	}
	if v := r.Header.Values("Sec-Websocket-Version"); len(v) != 1 || strings.TrimSpace(v[0]) != "13" {
		// rfc6455#section-4.4 requires the supported version, and rfc9110#section-15.5.22 the
		// protocol to upgrade to.
		h.Set("Sec-Websocket-Version", "13")
		h.Set("Upgrade", "websocket")
		h.Set("Connection", "Upgrade")
		return refuse(http.StatusUpgradeRequired, "UpgradeRequired", "Sec-WebSocket-Version %q: must be 13", v)
	}
	if k := r.Header.Values("Sec-Websocket-Key"); len(k) != 1 || !isValidKey(k[0]) {
		return refuse(http.StatusBadRequest, "BadRequest", "Sec-WebSocket-Key %q: must be 16 bytes in base64", k)
	}
	if r.ContentLength != 0 {
		// The library would read the body as frames.
		return refuse(http.StatusBadRequest, "BadRequest", "the request must not have a body")
	}
	if !transport.OriginAllowed(r, allowOrigins) {
		return refuse(http.StatusForbidden, "Forbidden", "origin %q is not allowed to watch", r.Header.Values("Origin"))
	}
	return nil
}

// refuse returns the error of a handshake that is refused with an HTTP status.
func refuse(status int, reason, format string, args ...any) error {
	return &listwatch.Error{
		Code: listwatch.CodeOfHTTP(status), Op: opUpgrade, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func isValidKey(key string) bool {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key))
	return err == nil && len(b) == 16
}

// acceptKey returns the Sec-WebSocket-Accept that answers a Sec-WebSocket-Key:
// rfc6455#section-4.2.2.
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// upgradeHeader returns the headers of the response that accepts the handshake r, with
// permessage-deflate if deflate is true.
func upgradeHeader(r *http.Request, deflate bool) http.Header {
	h := http.Header{
		"Upgrade":              {"websocket"},
		"Connection":           {"Upgrade"},
		"Sec-Websocket-Accept": {acceptKey(r.Header.Get("Sec-Websocket-Key"))},
	}
	if deflate {
		h.Set("Sec-Websocket-Extensions", agreedDeflate)
	}
	return h
}

// hasToken reports whether a header, a comma-separated list, contains token in any case.
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

// A hijackedWriter is the ResponseWriter that a library receives. Its connection is hijacked
// already: this package hijacks it, so that it can still respond with an error if hijacking
// fails.
type hijackedWriter struct {
	header http.Header // the additional headers of the 101 response
	conn   *conn
	buffer *bufio.ReadWriter
}

// hijack hijacks the connection of w. It keeps bytes that the client has sent after the
// request.
func hijack(w http.ResponseWriter, o transport.Options) (*hijackedWriter, error) {
	c, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Op: opUpgrade, Status: http.StatusNotImplemented, Reason: "NotImplemented",
			Message: "the connection cannot be hijacked", Err: err,
		}
	}
	connio.TuneTCP(c)
	h := &hijackedWriter{header: withoutHandshake(w.Header()), conn: newConn(c, false, o.WriteTimeout), buffer: buffer}
	h.conn.validator = validator{fromClient: true, maxMessage: maxInbound}
	if n := buffer.Reader.Buffered(); n > 0 {
		early, _ := buffer.Reader.Peek(n)
		h.conn.readAhead = append([]byte(nil), early...)
	}
	buffer.Reader.Reset(h.conn)
	buffer.Writer.Reset(h.conn)
	return h, nil
}

// withoutHandshake returns a copy of h without the headers that describe the handshake or a
// body.
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
func (h *hijackedWriter) Header() http.Header { return h.header }

// WriteHeader writes the status line and the headers.
func (h *hijackedWriter) WriteHeader(status int) {
	w := h.buffer.Writer
	fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = h.header.Write(w)
	_, _ = w.WriteString("\r\n")
	_ = w.Flush() // if it fails, the first read fails too
}

// Write discards the body of a refusal. A library refuses no request that checkRequest has
// accepted.
func (h *hijackedWriter) Write(p []byte) (int, error) { return len(p), nil }

// Hijack returns the connection.
func (h *hijackedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.conn, h.buffer, nil }
