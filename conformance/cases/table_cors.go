package cases

// page is the origin of pages that a server for browsers lets in.
const page = "https://app.example.com"

var (
	forPages        = Setup{Access: Access{AllowedOrigin: page}}
	forPagesOfUsers = Setup{Access: Access{AllowedOrigin: page, RequireUser: true}}
)

// corsCases are those of pages in browsers.
var corsCases = []Case{
	{
		ID: "cors/ws-no-origin", Level: Promise, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "a WebSocket without Origin, which no browser opens, is accepted (RFC 6455, section 10.2)",
		run:  wsNoOrigin,
	},
	{
		ID: "cors/ws-foreign-origin", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "a WebSocket of a page that is not allowed to is answered 403 (RFC 6455, sections 10.2 and 4.2.2)",
		run:  wsForeignOrigin,
	},
	{
		ID: "cors/ws-null-origin", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: `the Origin "null" is a foreign one (RFC 6454, section 7.3)`,
		run:  wsNullOrigin,
	},
	{
		ID: "cors/same-origin", Level: Must, Subject: Server, Transports: "ws", Mode: "r",
		Rule: "a WebSocket is accepted where its Origin is the server, whatever the port, the case of letters and the kind of address",
		run:  sameOrigin,
	},
	{
		ID: "cors/preflight", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "a preflight of an allowed origin is answered 204 with what is allowed, without credentials; others are allowed nothing (Fetch, CORS protocol)",
		setup: forPagesOfUsers,
		needs: Configurable, run: corsPreflight,
	},
	{
		ID: "cors/simple", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "answers and errors name an allowed origin and never *, all vary with Origin, and others may not read them (Fetch, CORS protocol)",
		setup: forPagesOfUsers,
		needs: Configurable, run: corsSimple,
	},
	{
		ID: "cors/eventsource", Level: Should, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "an EventSource of an allowed origin, with credentials, gets events and is resumed (HTML, section 9.2)",
		setup: forPages,
		needs: Configurable | Writes | SoleWriter, run: corsEventSource,
	},
}
