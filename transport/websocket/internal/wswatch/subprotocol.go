package wswatch

import (
	"net/http"
	"strings"

	"github.com/listwatch/listwatch/framing"
)

// subprotocolAny is a subprotocol that leaves the choice of the framing to the Accept header. The
// subprotocol of a [framing.SubprotocolFramer], on the other hand, selects this framing. It
// overrides the Accept header, because a browser cannot set headers for a WebSocket.
const subprotocolAny = "v1"

// OfferedSubprotocols returns the subprotocols that h offers, in the client's order.
func OfferedSubprotocols(h http.Header) []string {
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
// a subprotocol that names one of framings, which is then returned too, or subprotocolAny, which
// names no framing. If there is no such subprotocol, it returns "". Offers are in the client's
// order of preference (rfc6455#section-4.1). An unknown subprotocol is never echoed, because a
// client would conclude that the server supports it.
func chooseSubprotocol(h http.Header, framings *framing.Registry) (string, framing.Framer) {
	for _, name := range OfferedSubprotocols(h) {
		if f, ok := framings.LookupSubprotocol(name); ok {
			return name, f
		}
		if name == subprotocolAny {
			return name, nil
		}
	}
	return "", nil
}
