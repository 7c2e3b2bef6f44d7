// Package disconnect has the cases about lost connections and draining servers.
package disconnect

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// DropCases lists the cases about disconnects and vanished peers.
var DropCases = []harness.Case{
	{
		ID: "drop/client-close", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule:  "the server releases a watch as soon as its client closes it",
		Needs: harness.Writes | harness.CountsWatches | harness.SoleWriter, Run: clientClose,
	},
	{
		ID: "drop/rst", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "after a connection reset within an event the server releases the watch, and " +
			"the client resumes exactly",
		Needs: harness.Writes | harness.SoleWriter, Run: resetWithinEvent,
	},
	{
		ID: "drop/half-open", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "the server detects a vanished client by pings, or because it reads nothing",
		Needs: harness.Writes | harness.CountsWatches | harness.SoleWriter, Run: halfOpen,
	},
	{
		ID: "drop/client-half-open", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a client detects a vanished server and resumes",
		Needs: harness.Writes | harness.SoleWriter, Run: clientHalfOpen,
	},
	{
		ID: "drop/h2-rst-stream", Level: harness.Must, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule:  "RST_STREAM ends one stream only (RFC 9113 5.4.2, 6.4)",
		Needs: harness.Writes | harness.CountsWatches | harness.SoleWriter, Run: h2ResetStream,
	},
	{
		ID: "drop/h2-goaway", Level: harness.Must, Subject: harness.Client, Transports: "h2", Modes: []harness.Mode{harness.FakeTime},
		Rule: "after GOAWAY a client reads the remaining streams to their end and opens new " +
			"ones on another connection (RFC 9113 6.8)",
		Needs: harness.InProcess, Run: h2GoAway,
	},
	{
		ID: "drop/h2-ping-timeout", Level: harness.Promise, Subject: harness.Client, Transports: "h2", Modes: []harness.Mode{harness.FakeTime},
		Rule: "after an unanswered PING a client resumes all streams of the connection on " +
			"another one (RFC 9113 6.7)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2PingTimeout,
	},
	{
		ID: "drop/ws-close-echo", Level: harness.Must, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "the server answers a close frame and then closes the connection (RFC 6455 " +
			"5.5.1, 7.1.1)",
		Run: wsCloseEcho,
	},
	{
		ID: "drop/ws-1006", Level: harness.Must, Subject: harness.Client, Transports: "ws", Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "a connection that ends without a close frame is not a clean end; the client " +
			"resumes (RFC 6455 7.1.5)",
		Needs: harness.Writes | harness.SoleWriter, Run: wsLostConnection,
	},
	{
		ID: "drop/storm", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "clients that lose their connections at the same time do not reconnect at the " +
			"same time",
		Needs: harness.InProcess, Run: reconnectStorm,
	},
	{
		ID: "drop/no-leak", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule:  "a finished watch leaves no goroutine behind, however it ended",
		Needs: harness.Writes | harness.SoleWriter, Run: noLeaks, RunsAlone: true,
	},
}
