package cases

// dropCases are those of disconnects and peers that vanish.
var dropCases = []Case{
	{
		ID: "drop/client-close", Level: Must, Subject: Server, On: all, Lane: "fr",
		Says:  "a server gives up the watch of a client that closed it, at once",
		needs: Writes | Counts | Alone, run: clientClose,
	},
	{
		ID: "drop/rst", Level: Must, Subject: Both, On: all, Lane: "fr",
		Says:  "where the connection is reset within an event the server gives up the watch, and a client that resumes it is exact",
		needs: Writes | Alone, run: dropReset,
	},
	{
		ID: "drop/half-open", Level: Promise, Subject: Server, On: all, Lane: "f",
		Says:  "a client that vanished without a word is found out by pings, or by what it does not take",
		needs: Writes | Counts | Alone, run: halfOpen,
	},
	{
		ID: "drop/client-half-open", Level: Promise, Subject: Client, On: all, Lane: "f",
		Says:  "a client finds out that the server vanished, and resumes",
		needs: Writes | Alone, run: clientHalfOpen,
	},
	{
		ID: "drop/h2-rst-stream", Level: Must, Subject: Server, On: "h2", Lane: "fr",
		Says:  "RST_STREAM ends one stream and no other (RFC 9113 5.4.2, 6.4)",
		needs: Writes | Counts | Alone, run: h2ResetStream,
	},
	{
		ID: "drop/h2-goaway", Level: Must, Subject: Client, On: "h2", Lane: "f",
		Says:  "after GOAWAY a client reads the streams that it covers to their end, and opens new ones on another connection (RFC 9113 6.8)",
		needs: Inside, run: h2GoAway,
	},
	{
		ID: "drop/h2-ping-timeout", Level: Promise, Subject: Client, On: "h2", Lane: "f",
		Says:  "where a PING is not answered, all streams of the connection are resumed on another (RFC 9113 6.7)",
		needs: Writes | Alone, run: h2PingTimeout,
	},
	{
		ID: "drop/ws-close-echo", Level: Must, Subject: Server, On: "ws", Lane: "fr",
		Says: "a close frame is answered by one, and then the server closes the connection (RFC 6455 5.5.1, 7.1.1)",
		run:  wsCloseEcho,
	},
	{
		ID: "drop/ws-1006", Level: Must, Subject: Client, On: "ws", Lane: "fr",
		Says:  "a connection that ends without a close frame is no clean end for a client, which resumes (RFC 6455 7.1.5)",
		needs: Writes | Alone, run: ws1006,
	},
	{
		ID: "drop/storm", Level: Promise, Subject: Client, On: all, Lane: "f",
		Says:  "clients that were cut off together do not come back together",
		needs: Inside, run: storm,
	},
	{
		ID: "drop/no-leak", Level: Must, Subject: Both, On: all, Lane: "fr",
		Says:  "watches that came and went, in whatever way, leave nothing behind",
		needs: Writes | Alone, run: noLeak, measures: true,
	},
}
