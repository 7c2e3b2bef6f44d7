package cases

// dropCases are those of disconnects and peers that vanish.
var dropCases = []Case{
	{
		ID: "drop/client-close", Level: Must, Subject: Server, Transports: all, Mode: "fr",
		Rule:  "a server gives up the watch of a client that closed it, at once",
		needs: Writes | CountsWatches | SoleWriter, run: clientClose,
	},
	{
		ID: "drop/rst", Level: Must, Subject: Both, Transports: all, Mode: "fr",
		Rule:  "where the connection is reset within an event the server gives up the watch, and a client that resumes it is exact",
		needs: Writes | SoleWriter, run: dropReset,
	},
	{
		ID: "drop/half-open", Level: Promise, Subject: Server, Transports: all, Mode: "f",
		Rule:  "a client that vanished without a word is found out by pings, or by what it does not take",
		needs: Writes | CountsWatches | SoleWriter, run: halfOpen,
	},
	{
		ID: "drop/client-half-open", Level: Promise, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a client finds out that the server vanished, and resumes",
		needs: Writes | SoleWriter, run: clientHalfOpen,
	},
	{
		ID: "drop/h2-rst-stream", Level: Must, Subject: Server, Transports: "h2", Mode: "fr",
		Rule:  "RST_STREAM ends one stream and no other (RFC 9113 5.4.2, 6.4)",
		needs: Writes | CountsWatches | SoleWriter, run: h2ResetStream,
	},
	{
		ID: "drop/h2-goaway", Level: Must, Subject: Client, Transports: "h2", Mode: "f",
		Rule:  "after GOAWAY a client reads the streams that it covers to their end, and opens new ones on another connection (RFC 9113 6.8)",
		needs: InProcess, run: h2GoAway,
	},
	{
		ID: "drop/h2-ping-timeout", Level: Promise, Subject: Client, Transports: "h2", Mode: "f",
		Rule:  "where a PING is not answered, all streams of the connection are resumed on another (RFC 9113 6.7)",
		needs: Writes | SoleWriter, run: h2PingTimeout,
	},
	{
		ID: "drop/ws-close-echo", Level: Must, Subject: Server, Transports: "ws", Mode: "fr",
		Rule: "a close frame is answered by one, and then the server closes the connection (RFC 6455 5.5.1, 7.1.1)",
		run:  wsCloseEcho,
	},
	{
		ID: "drop/ws-1006", Level: Must, Subject: Client, Transports: "ws", Mode: "fr",
		Rule:  "a connection that ends without a close frame is no clean end for a client, which resumes (RFC 6455 7.1.5)",
		needs: Writes | SoleWriter, run: ws1006,
	},
	{
		ID: "drop/storm", Level: Promise, Subject: Client, Transports: all, Mode: "f",
		Rule:  "clients that were cut off together do not come back together",
		needs: InProcess, run: storm,
	},
	{
		ID: "drop/no-leak", Level: Must, Subject: Both, Transports: all, Mode: "fr",
		Rule:  "watches that came and went, in whatever way, leave nothing behind",
		needs: Writes | SoleWriter, run: noLeak, measures: true,
	},
}
