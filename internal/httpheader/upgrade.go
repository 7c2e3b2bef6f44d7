package httpheader

import (
	"net/http"
	"strings"
)

// RequestsWebSocket reports whether r requests an upgrade to WebSocket, valid or not. An Upgrade
// header that the Connection header does not list is ignored, and HTTP/1.0 has no upgrades
// (rfc9110#section-7.8). An HTTP/2 server rejects these headers, but it may set them itself for an
// extended CONNECT (rfc8441#section-5).
func RequestsWebSocket(r *http.Request) bool {
	return r.ProtoAtLeast(1, 1) &&
		HasToken(r.Header, "Connection", "upgrade") && HasToken(r.Header, "Upgrade", "websocket")
}

// HasToken reports whether the named header, a comma-separated list, contains the given token. It
// ignores case.
func HasToken(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for t := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}
