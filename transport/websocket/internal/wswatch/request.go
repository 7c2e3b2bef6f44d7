// Package wswatch has the parts of a watch over WebSocket that do not depend on the library: the
// checks of a handshake, the choice of the framing, the limits for messages of clients, and the
// errors for the ends of a connection.
package wswatch

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
)

const opUpgrade = "upgrade to WebSocket"

// CheckRequest checks the rules of RFC 6455 section 4.2.1 for a handshake. The libraries check
// most of them too, but respond themselves, without a Status. CheckRequest sets the
// headers of w that the response to a bad request must have.
func CheckRequest(w http.ResponseWriter, r *http.Request, allowOrigins []string) error {
	h := w.Header()
	if r.Method != http.MethodGet {
		h.Set("Allow", http.MethodGet)
		return refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "method %s: must be GET", r.Method)
	}
	if v := r.Header.Values("Sec-Websocket-Version"); len(v) != 1 || strings.TrimSpace(v[0]) != "13" {
		// The response must name the supported version (rfc6455#section-4.4) and the protocol to
		// upgrade to (rfc9110#section-15.5.22).
		h.Set("Sec-Websocket-Version", "13")
		h.Set("Upgrade", "websocket")
		h.Set("Connection", "Upgrade")
		return refuse(http.StatusUpgradeRequired, "UpgradeRequired", "Sec-WebSocket-Version %q: must be 13", v)
	}
	if k := r.Header.Values("Sec-Websocket-Key"); len(k) != 1 || !isValidKey(k[0]) {
		return refuse(http.StatusBadRequest, "BadRequest", "Sec-WebSocket-Key %q: must be 16 bytes in base64", k)
	}
	if r.ContentLength != 0 {
		// Otherwise the body would be read as frames.
		return refuse(http.StatusBadRequest, "BadRequest", "the request must not have a body")
	}
	if !transport.OriginAllowed(r, allowOrigins) {
		return refuse(http.StatusForbidden, "Forbidden", "origin %q is not allowed to watch at Host %q",
			r.Header.Values("Origin"), r.Host)
	}
	return nil
}

// refuse returns the error of a handshake that is refused with an HTTP status.
func refuse(status int, reason, format string, args ...any) error {
	return &listwatch.Error{
		Code: kubestatus.CodeOfHTTP(status), Op: opUpgrade, Status: status, Reason: reason,
		Message: fmt.Sprintf(format, args...),
	}
}

// ErrNoHijack returns the error for a connection that cannot be hijacked. cause may be nil.
func ErrNoHijack(cause error) error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Op: opUpgrade, Status: http.StatusNotImplemented, Reason: "NotImplemented",
		Message: "the connection cannot be hijacked", Err: cause,
	}
}

func isValidKey(key string) bool {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key))
	return err == nil && len(b) == 16
}

// Negotiate selects the subprotocol, which may be "", and the framing. If the subprotocol names
// a framing, the Accept header is ignored.
func Negotiate(
	w http.ResponseWriter, r *http.Request, o transport.Options, e *transport.Envelope,
) (string, transport.Encoder, error) {
	if o.Framings == nil {
		o.Framings = framing.Default()
	}
	subprotocol, f := chooseSubprotocol(r.Header, o.Framings)
	if f != nil {
		// The error is nil, because the media types of a registry are valid.
		o.Accept, _ = framing.ParseAccept([]string{f.MediaType()})
	}
	encoder, err := transport.Negotiate(w, r, o, e)
	return subprotocol, encoder, err
}

// WithoutHandshake returns a copy of h without the headers that describe the handshake or a
// body.
func WithoutHandshake(h http.Header) http.Header {
	h = h.Clone()
	if h == nil {
		return http.Header{}
	}
	for name := range h {
		switch {
		case strings.HasPrefix(name, "Sec-Websocket-"), strings.HasPrefix(name, http.TrailerPrefix):
			delete(h, name)
		case name == "Connection", name == "Upgrade",
			name == "Content-Length", name == "Transfer-Encoding", name == "Trailer":
			delete(h, name)
		}
	}
	return h
}
