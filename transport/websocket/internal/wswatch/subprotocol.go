package wswatch

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// SubprotocolAny is a subprotocol that leaves the choice of the framing to the Accept header. A
// browser that sends a bearer token as a subprotocol must also offer a subprotocol that the server
// can choose. Kubernetes clients offer SubprotocolAny. The subprotocol of a
// [framing.SubprotocolFramer], on the other hand, selects this framing. It overrides the Accept
// header, because a browser cannot set headers for a WebSocket.
const SubprotocolAny = "v1"

// bearerPrefix is the prefix of a subprotocol that holds a bearer token in base64url without
// padding, as in kube-apiserver.
const bearerPrefix = "base64url.bearer.authorization.k8s.io."

// offeredSubprotocols returns the subprotocols that h offers, in the client's order.
func offeredSubprotocols(h http.Header) []string {
	var names []string
	for _, line := range h.Values("Sec-Websocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// chooseSubprotocol returns the first subprotocol that h offers and the server can choose. This is
// a subprotocol that names one of framings, which is then returned too, or SubprotocolAny, which
// names no framing. If there is no such subprotocol, it returns "". Offers are in the client's
// order of preference (rfc6455#section-4.1). An unknown subprotocol is never echoed, because a
// client would conclude that the server supports it.
func chooseSubprotocol(h http.Header, framings *framing.Registry) (string, framing.Framer) {
	for _, name := range offeredSubprotocols(h) {
		if f, ok := framings.LookupSubprotocol(name); ok {
			return name, f
		}
		if name == SubprotocolAny {
			return name, nil
		}
	}
	return "", nil
}

// BearerToken returns the bearer token that a browser sends as a subprotocol, because it cannot
// set Authorization for a WebSocket. The subprotocol is
// base64url.bearer.authorization.k8s.io.TOKEN, with the token in base64url without padding. ok
// is false if there is no token. If there are several tokens, or the token cannot be decoded,
// the error has code Unauthorized.
func BearerToken(r *http.Request) (token string, ok bool, err error) {
	for _, name := range offeredSubprotocols(r.Header) {
		encoded, isToken := strings.CutPrefix(name, bearerPrefix)
		if !isToken {
			continue
		}
		if ok {
			return "", false, errBadToken("more than one bearer token in Sec-WebSocket-Protocol")
		}
		b, err := base64.RawURLEncoding.DecodeString(encoded)
		// The decoder ignores line breaks and unused bits, so compare with the encoding of the
		// result.
		if err != nil || len(b) == 0 || base64.RawURLEncoding.EncodeToString(b) != encoded || !utf8.Valid(b) {
			// The message may be logged, so it does not contain the token.
			return "", false, errBadToken("the bearer token in Sec-WebSocket-Protocol must be UTF-8 text in base64url without padding")
		}
		token, ok = string(b), true
	}
	return token, ok, nil
}

func errBadToken(message string) error {
	return &listwatch.Error{Code: listwatch.Unauthorized, Op: opUpgrade, Message: message}
}
