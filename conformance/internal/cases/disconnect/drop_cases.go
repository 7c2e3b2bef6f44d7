// Package disconnect has the cases about lost connections and draining servers.
package disconnect

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// DropCases lists the cases about disconnects and vanished peers.
var DropCases = []harness.Case{
	{
		ID: "drop/client-close", Mode: harness.BothTimes, Needs: harness.OwnCollection | harness.CountsWatches,
		Run:  clientClose,
		Rule: "the server releases a watch as soon as its client closes it",
	},
	{
		ID: "drop/rst", Subject: harness.Both, Mode: harness.BothTimes, Needs: harness.OwnCollection,
		Run:  resetWithinEvent,
		Rule: "after a connection reset within an event the server releases the watch, and the client resumes exactly",
	},
	{
		ID: "drop/half-open", Level: harness.Promise, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.CountsWatches, Run: halfOpen,
		Rule: "the server detects a vanished client by pings, or because it reads nothing",
	},
	{
		ID: "drop/client-half-open", Level: harness.Promise, Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.OwnCollection, Run: clientHalfOpen,
		Rule: "a client detects a vanished server and resumes",
	},
	{
		ID: "drop/h2-rst-stream", Transports: "h2", Mode: harness.BothTimes,
		Needs: harness.OwnCollection | harness.CountsWatches, Run: h2ResetStream,
		Rule: "RST_STREAM ends one stream only (RFC 9113 5.4.2, 6.4)",
	},
	{
		ID: "drop/h2-goaway", Subject: harness.Client, Transports: "h2", Mode: harness.FakeTime,
		Needs: harness.InProcess, Run: h2GoAway,
		Rule: "after GOAWAY a client reads the remaining streams to their end and opens new ones on another " +
			"connection (RFC 9113 6.8)",
	},
	{
		ID: "drop/h2-ping-timeout", Level: harness.Promise, Subject: harness.Client, Transports: "h2",
		Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: h2PingTimeout,
		Rule: "after an unanswered PING a client resumes all streams of the connection on another one (RFC 9113 6.7)",
	},
	{
		ID: "drop/ws-close-echo", Transports: "ws", Mode: harness.BothTimes, Run: wsCloseEcho,
		Rule: "the server answers a close frame and then closes the connection (RFC 6455 5.5.1, 7.1.1)",
	},
	{
		ID: "drop/ws-1006", Subject: harness.Client, Transports: "ws", Mode: harness.BothTimes,
		Needs: harness.OwnCollection, Run: wsLostConnection,
		Rule: "a connection that ends without a close frame is not a clean end; the client resumes (RFC 6455 7.1.5)",
	},
	{
		ID: "drop/storm", Level: harness.Promise, Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.InProcess, Run: reconnectStorm,
		Rule: "clients that lose their connections at the same time do not reconnect at the same time",
	},
	{
		ID: "drop/no-leak", Subject: harness.Both, Mode: harness.BothTimes, RunsAlone: true,
		Needs: harness.OwnCollection, Run: noLeaks,
		Rule: "a finished watch leaves no goroutine behind, however it ended",
	},
}
