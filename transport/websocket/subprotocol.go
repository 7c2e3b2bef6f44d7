package websocket

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// The subprotocols. Those that name a framing choose it, whatever Accept says: a browser can't set Accept.
const (
	// SubprotocolJSON is JSON, one event a text message.
	SubprotocolJSON = "listwatch.v1.json"
	// SubprotocolCBOR is CBOR, one event a binary message.
	SubprotocolCBOR = "listwatch.v1.cbor"
	// SubprotocolAny leaves the framing to Accept. Browsers must offer a subprotocol that the server can choose beside the one
	// that is a bearer token, and Kubernetes clients offer this one.
	SubprotocolAny = "v1"
)

// bearerPrefix begins a subprotocol that is a bearer token, in base64url without padding, as kube-apiserver takes it.
const bearerPrefix = "base64url.bearer.authorization.k8s.io."

// subprotocols holds, for each subprotocol, the media type of its framing; empty: any.
var subprotocols = map[string]string{
	SubprotocolJSON: "application/json",
	SubprotocolCBOR: "application/cbor-seq",
	SubprotocolAny:  "",
}

// subprotocolOf returns the subprotocol that names f; empty: none does.
func subprotocolOf(f framing.Framer) string {
	for name, mediaType := range subprotocols {
		if mediaType == f.MediaType() {
			return name
		}
	}
	return ""
}

// offers returns the subprotocols that h offers, in the client's order.
func offers(h http.Header) []string {
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

// chooseSubprotocol returns the first offer in h that is ours and whose framing is to be had; empty: there is none. Offers are in
// the client's order of preference (rfc6455#section-4.1). One that nobody knows is never echoed: a client would take it for agreed.
func chooseSubprotocol(h http.Header, framings *framing.Registry) string {
	for _, name := range offers(h) {
		mediaType, known := subprotocols[name]
		if !known {
			continue
		}
		if mediaType == "" {
			return name
		}
		if _, err := framings.Negotiate([]string{mediaType}, true); err == nil {
			return name
		}
	}
	return ""
}

// BearerToken returns the bearer token that a browser sends as a subprotocol, because it can't set Authorization on a WebSocket:
// base64url.bearer.authorization.k8s.io.<token in base64url>. ok is false where there is none. The error has code Unauthorized: more
// than one token, or one that can't be read.
func BearerToken(r *http.Request) (token string, ok bool, err error) {
	for _, name := range offers(r.Header) {
		encoded, isToken := strings.CutPrefix(name, bearerPrefix)
		if !isToken {
			continue
		}
		if ok {
			return "", false, badToken("more than one bearer token in Sec-WebSocket-Protocol")
		}
		b, err := base64.RawURLEncoding.DecodeString(encoded)
		// The decoder passes over line breaks, and over bits that mean nothing.
		if err != nil || len(b) == 0 || base64.RawURLEncoding.EncodeToString(b) != encoded || !utf8.Valid(b) {
			// The token itself stays out of the message, which may end up in a log.
			return "", false, badToken("the bearer token in Sec-WebSocket-Protocol is not base64url of UTF-8 text")
		}
		token, ok = string(b), true
	}
	return token, ok, nil
}

func badToken(message string) error {
	return &listwatch.Error{Code: listwatch.Unauthorized, Op: op, Message: message}
}
