package websocket

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// bearerPrefix is the prefix of a subprotocol that holds a bearer token in base64url without
// padding, as in kube-apiserver.
const bearerPrefix = "base64url.bearer.authorization.k8s.io."

// BearerToken returns the bearer token that a browser sends as a subprotocol, because it cannot
// set Authorization for a WebSocket. The subprotocol is
// base64url.bearer.authorization.k8s.io.TOKEN, with the token in base64url without padding. ok
// is false if there is no token. If there are several tokens, or the token cannot be decoded,
// the error has code Unauthorized.
//
// The browser must also offer a subprotocol that the server can choose: the subprotocol of a
// framing, or "v1", as Kubernetes clients do. With "v1" the Accept header selects the framing.
func BearerToken(r *http.Request) (token string, ok bool, err error) {
	for _, name := range wswatch.OfferedSubprotocols(r.Header) {
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
			return "", false, errBadToken("the bearer token in Sec-WebSocket-Protocol must be UTF-8 text " +
				"in base64url without padding")
		}
		token, ok = string(b), true
	}
	return token, ok, nil
}

func errBadToken(message string) error {
	return &listwatch.Error{Code: listwatch.Unauthorized, Op: "upgrade to WebSocket", Message: message}
}
