package auth

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// allowedOrigin is the only origin that the setups below allow.
const allowedOrigin = "https://app.example.com"

var (
	corsSetup      = harness.Setup{Access: harness.Access{AllowedOrigin: allowedOrigin}}
	corsTokenSetup = harness.Setup{Access: harness.Access{AllowedOrigin: allowedOrigin, RequireUser: true}}
)

// CORSCases lists the cases about requests from web pages.
var CORSCases = []harness.Case{
	harness.Rule("cors/ws-no-origin",
		"a WebSocket handshake without Origin, which no browser sends, is accepted (RFC 6455, section 10.2)",
		harness.Case{Strength: harness.Promise, Transports: "ws", Run: wsNoOrigin}),
	harness.Rule("cors/ws-foreign-origin",
		"a WebSocket handshake from a foreign origin gets 403 (RFC 6455, sections 10.2 and 4.2.2)",
		harness.Case{Transports: "ws", Run: wsForeignOrigin}),
	harness.Rule("cors/ws-null-origin", `the Origin "null" counts as a foreign origin (RFC 6454, section 7.3)`,
		harness.Case{Transports: "ws", Run: wsNullOrigin}),
	harness.Rule("cors/same-origin",
		"a WebSocket handshake whose Origin is the server itself is accepted, whatever the port, letter case and kind "+
			"of address",
		harness.Case{Transports: "ws", Run: sameOrigin}),
	harness.Rule("cors/preflight",
		"a preflight request of an allowed origin gets 204 with the allowed methods and headers, without credentials; "+
			"other origins are allowed nothing (Fetch, CORS protocol)",
		harness.Case{Transports: "h1 h2", Needs: harness.Configurable, Setup: corsTokenSetup, Run: corsPreflight}),
	harness.Rule("cors/simple",
		"responses and errors name an allowed origin and never *; all vary with Origin, and other origins cannot read "+
			"them (Fetch, CORS protocol)",
		harness.Case{Transports: "h1 h2", Needs: harness.Configurable, Setup: corsTokenSetup, Run: corsSimple}),
	harness.Rule("cors/eventsource",
		"an EventSource of an allowed origin, with credentials, receives events and resumes (HTML, section 9.2)",
		harness.Case{
			Strength: harness.Should, Transports: "h1 h2", Needs: harness.OwnCollection | harness.Configurable,
			Setup: corsSetup, Run: corsEventSource,
		}),
}
