package disconnect

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// DrainCases lists the cases about graceful shutdown.
var DrainCases = []harness.Case{
	{
		ID: "drain/ends-all", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule:  "a shutdown ends all watches cleanly within a second, on every transport",
		Needs: harness.Writes | harness.Drains | harness.SoleWriter, Run: drainEndsAll,
	},
	{
		ID: "drain/final-bookmark", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "the last event of a draining watch with bookmarks is a bookmark at the newest " +
			"version (KEP-1904)",
		Needs: harness.Writes | harness.Drains | harness.SoleWriter, Run: drainFinalBookmark,
	},
	{
		ID: "drain/goaway", Level: harness.Should, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.FakeTime},
		Rule: "the server sends GOAWAY with NO_ERROR before it closes an HTTP/2 connection " +
			"(RFC 9113 6.8)",
		Needs: harness.Writes | harness.Drains | harness.InProcess | harness.SoleWriter, Run: drainGoAway,
	},
	{
		ID: "drain/ws-1001", Level: harness.Should, Subject: harness.Server, Transports: "ws", Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "the server closes a draining WebSocket with code 1001, going away (RFC 6455 " +
			"7.4.1)",
		Needs: harness.Drains, Run: drainWSGoingAway,
	},
	{
		ID: "drain/refuse-new", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "a new watch during a shutdown gets 503 with Retry-After, and on HTTP/1.1 " +
			"Connection: close (RFC 9110 10.2.3, 15.6.4)",
		Needs: harness.Drains, Run: drainRefuseNew,
	},
	{
		ID: "drain/rate-limited", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "if configured, the ends of the watches are spread over the grace period",
		Setup: harness.Setup{Timing: watchserver.Timing{DrainSpread: drainSpread}},
		Needs: harness.Drains | harness.Configurable, Run: drainRateLimited,
	},
	{
		ID: "drain/no-loss", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client that resumes at another server misses nothing written before, during " +
			"or after the shutdown",
		Needs: harness.Writes | harness.Drains | harness.Replicas | harness.InProcess | harness.SoleWriter, Run: drainNoLoss,
	},
	{
		ID: "drain/deadline", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a client that reads nothing does not delay a shutdown beyond its deadline",
		Setup: harness.Setup{Limits: watchserver.Limits{WriteTimeout: -1}},
		Needs: harness.Writes | harness.Drains | harness.Configurable | harness.SoleWriter, Run: drainDeadline,
	},
}

const drainSpread = time.Minute
