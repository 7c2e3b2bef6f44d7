package auth

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// page is the origin of pages that a server for browsers lets in.
const page = "https://app.example.com"

var (
	forPages        = harness.Setup{Access: harness.Access{AllowedOrigin: page}}
	forPagesOfUsers = harness.Setup{Access: harness.Access{AllowedOrigin: page, RequireUser: true}}
)

// CORSCases are those of pages in browsers.
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
		Setup: forPagesOfUsers,
		Needs: harness.Configurable, Run: corsPreflight,
	},
	{
		ID: "cors/simple", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "responses and errors name an allowed origin and never *; all vary with " +
			"Origin, and other origins cannot read them (Fetch, CORS protocol)",
		Setup: forPagesOfUsers,
		Needs: harness.Configurable, Run: corsSimple,
	},
	{
		ID: "cors/eventsource", Level: harness.Should, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "an EventSource of an allowed origin, with credentials, receives events and " +
			"resumes (HTML, section 9.2)",
		Setup: forPages,
		Needs: harness.Configurable | harness.Writes | harness.SoleWriter, Run: corsEventSource,
	},
}
