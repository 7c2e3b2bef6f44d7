// Package disconnect has the cases about lost connections and draining servers.
package disconnect

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// DropCases lists the cases about disconnects and vanished peers.
var DropCases = []harness.Case{
	harness.Rule("drop/client-close", "the server releases a watch as soon as its client closes it",
		harness.Case{Mode: harness.BothTimes, Needs: harness.OwnCollection | harness.CountsWatches, Run: clientClose}),
	harness.Rule("drop/rst",
		"after a connection reset within an event the server releases the watch, and the client resumes exactly",
		harness.Case{
			Subject: harness.Both, Mode: harness.BothTimes, Needs: harness.OwnCollection, Run: resetWithinEvent,
		}),
	harness.Rule("drop/half-open", "the server detects a vanished client by pings, or because it reads nothing",
		harness.Case{
			Strength: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.CountsWatches,
			Run: halfOpen,
		}),
	harness.Rule("drop/client-half-open", "a client detects a vanished server and resumes", harness.Case{
		Strength: harness.Promise, Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.OwnCollection,
		Run: clientHalfOpen,
	}),
	harness.Rule("drop/h2-rst-stream", "RST_STREAM ends one stream only (RFC 9113 5.4.2, 6.4)", harness.Case{
		Transports: "h2", Mode: harness.BothTimes, Needs: harness.OwnCollection | harness.CountsWatches,
		Run: h2ResetStream,
	}),
	harness.Rule("drop/h2-goaway",
		"after GOAWAY a client reads the remaining streams to their end and opens new ones on another connection (RFC "+
			"9113 6.8)", harness.Case{
			Subject: harness.Client, Transports: "h2", Mode: harness.FakeTime, Needs: harness.InProcess, Run: h2GoAway,
		}),
	harness.Rule("drop/h2-ping-timeout",
		"after an unanswered PING a client resumes all streams of the connection on another one (RFC 9113 6.7)",
		harness.Case{
			Strength: harness.Promise, Subject: harness.Client, Transports: "h2", Mode: harness.FakeTime,
			Needs: harness.OwnCollection, Run: h2PingTimeout,
		}),
	harness.Rule("drop/ws-close-echo",
		"the server answers a close frame and then closes the connection (RFC 6455 5.5.1, 7.1.1)",
		harness.Case{Transports: "ws", Mode: harness.BothTimes, Run: wsCloseEcho}),
	harness.Rule("drop/ws-1006",
		"a connection that ends without a close frame is not a clean end; the client resumes (RFC 6455 7.1.5)",
		harness.Case{
			Subject: harness.Client, Transports: "ws", Mode: harness.BothTimes, Needs: harness.OwnCollection,
			Run: wsLostConnection,
		}),
	harness.Rule("drop/storm", "clients that lose their connections at the same time do not reconnect at the same time",
		harness.Case{
			Strength: harness.Promise, Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess,
			Run: reconnectStorm,
		}),
	harness.Rule("drop/no-leak", "a finished watch leaves no goroutine behind, however it ended", harness.Case{
		Subject: harness.Both, Mode: harness.BothTimes, RunsAlone: true, Needs: harness.OwnCollection, Run: noLeaks,
	}),
}
