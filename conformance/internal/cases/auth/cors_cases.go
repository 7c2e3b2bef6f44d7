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
	{
		ID: "cors/ws-no-origin", Level: harness.Promise, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a WebSocket handshake without Origin, which no browser sends, is accepted (RFC " +
			"6455, section 10.2)",
		Run: wsNoOrigin,
	},
	{
		ID: "cors/ws-foreign-origin", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a WebSocket handshake from a foreign origin gets 403 (RFC 6455, sections 10.2 " +
			"and 4.2.2)",
		Run: wsForeignOrigin,
	},
	{
		ID: "cors/ws-null-origin", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: `the Origin "null" counts as a foreign origin (RFC 6454, section 7.3)`,
		Run:  wsNullOrigin,
	},
	{
		ID: "cors/same-origin", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.RealTime},
		Rule: "a WebSocket handshake whose Origin is the server itself is accepted, whatever " +
			"the port, letter case and kind of address",
		Run: sameOrigin,
	},
	{
		ID: "cors/preflight", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "a preflight request of an allowed origin gets 204 with the allowed methods " +
			"and headers, without credentials; other origins are allowed nothing (Fetch, CORS " +
			"protocol)",
		Setup: corsTokenSetup,
		Needs: harness.Configurable, Run: corsPreflight,
	},
	{
		ID: "cors/simple", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "responses and errors name an allowed origin and never *; all vary with " +
			"Origin, and other origins cannot read them (Fetch, CORS protocol)",
		Setup: corsTokenSetup,
		Needs: harness.Configurable, Run: corsSimple,
	},
	{
		ID: "cors/eventsource", Level: harness.Should, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "an EventSource of an allowed origin, with credentials, receives events and " +
			"resumes (HTML, section 9.2)",
		Setup: corsSetup,
		Needs: harness.Configurable | harness.Writes | harness.SoleWriter, Run: corsEventSource,
	},
}
