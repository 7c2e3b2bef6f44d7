// Package disconnect has the cases about connections that are lost and servers that drain.
package disconnect

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// DropCases are those of disconnects and peers that vanish.
var DropCases = []harness.Case{
	{
		ID: "drop/client-close", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "fr",
		Rule:  "a server gives up the watch of a client that closed it, at once",
		Needs: harness.Writes | harness.CountsWatches | harness.SoleWriter, Run: clientClose,
	},
	{
		ID: "drop/rst", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "fr",
		Rule:  "where the connection is reset within an event the server gives up the watch, and a client that resumes it is exact",
		Needs: harness.Writes | harness.SoleWriter, Run: dropReset,
	},
	{
		ID: "drop/half-open", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a client that vanished without a word is found out by pings, or by what it does not take",
		Needs: harness.Writes | harness.CountsWatches | harness.SoleWriter, Run: halfOpen,
	},
	{
		ID: "drop/client-half-open", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a client finds out that the server vanished, and resumes",
		Needs: harness.Writes | harness.SoleWriter, Run: clientHalfOpen,
	},
	{
		ID: "drop/h2-rst-stream", Level: harness.Must, Subject: harness.Server, Transports: "h2", Mode: "fr",
		Rule:  "RST_STREAM ends one stream and no other (RFC 9113 5.4.2, 6.4)",
		Needs: harness.Writes | harness.CountsWatches | harness.SoleWriter, Run: h2ResetStream,
	},
	{
		ID: "drop/h2-goaway", Level: harness.Must, Subject: harness.Client, Transports: "h2", Mode: "f",
		Rule:  "after GOAWAY a client reads the streams that it covers to their end, and opens new ones on another connection (RFC 9113 6.8)",
		Needs: harness.InProcess, Run: h2GoAway,
	},
	{
		ID: "drop/h2-ping-timeout", Level: harness.Promise, Subject: harness.Client, Transports: "h2", Mode: "f",
		Rule:  "where a PING is not answered, all streams of the connection are resumed on another (RFC 9113 6.7)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2PingTimeout,
	},
	{
		ID: "drop/ws-close-echo", Level: harness.Must, Subject: harness.Server, Transports: "ws", Mode: "fr",
		Rule: "a close frame is answered by one, and then the server closes the connection (RFC 6455 5.5.1, 7.1.1)",
		Run:  wsCloseEcho,
	},
	{
		ID: "drop/ws-1006", Level: harness.Must, Subject: harness.Client, Transports: "ws", Mode: "fr",
		Rule:  "a connection that ends without a close frame is no clean end for a client, which resumes (RFC 6455 7.1.5)",
		Needs: harness.Writes | harness.SoleWriter, Run: ws1006,
	},
	{
		ID: "drop/storm", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "clients that were cut off together do not come back together",
		Needs: harness.InProcess, Run: storm,
	},
	{
		ID: "drop/no-leak", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "fr",
		Rule:  "watches that came and went, in whatever way, leave nothing behind",
		Needs: harness.Writes | harness.SoleWriter, Run: noLeak, RunsAlone: true,
	},
}
