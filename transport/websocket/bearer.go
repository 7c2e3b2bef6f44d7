package websocket

import (
	"net/http"

	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// SubprotocolAny is a subprotocol that leaves the choice of the framing to the Accept header. A
// browser that sends a bearer token as a subprotocol must also offer a subprotocol that the server
// can choose. Kubernetes clients offer SubprotocolAny. The subprotocol of a
// [framing.SubprotocolFramer], on the other hand, selects this framing. It overrides the Accept
// header, because a browser cannot set headers for a WebSocket.
const SubprotocolAny = wswatch.SubprotocolAny

// BearerToken returns the bearer token that a browser sends as a subprotocol, because it cannot
// set Authorization for a WebSocket. The subprotocol is
// base64url.bearer.authorization.k8s.io.TOKEN, with the token in base64url without padding. ok
// is false if there is no token. If there are several tokens, or the token cannot be decoded,
// the error has code Unauthorized.
func BearerToken(r *http.Request) (token string, ok bool, err error) { return wswatch.BearerToken(r) }
