package disconnect

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// DrainCases lists the cases about graceful shutdown.
var DrainCases = []harness.Case{
	harness.Rule("drain/ends-all", "a shutdown ends all watches cleanly within a second, on every transport",
		harness.Case{Mode: harness.BothTimes, Needs: harness.OwnCollection | harness.Drains, Run: drainEndsAll}),
	harness.Rule("drain/final-bookmark",
		"the last event of a draining watch with bookmarks is a bookmark at the newest version (KEP-1904)",
		harness.Case{
			Strength: harness.Should, Mode: harness.BothTimes, Needs: harness.OwnCollection | harness.Drains,
			Run: drainFinalBookmark,
		}),
	harness.Rule("drain/goaway",
		"the server sends GOAWAY with NO_ERROR before it closes an HTTP/2 connection (RFC 9113 6.8)", harness.Case{
			Strength: harness.Should, Transports: "h2", Mode: harness.FakeTime,
			Needs: harness.OwnCollection | harness.Drains | harness.InProcess, Run: drainGoAway,
		}),
	harness.Rule("drain/ws-1001", "the server closes a draining WebSocket with code 1001, going away (RFC 6455 7.4.1)",
		harness.Case{
			Strength: harness.Should, Transports: "ws", Mode: harness.BothTimes, Needs: harness.Drains,
			Run: drainWSGoingAway,
		}),
	harness.Rule("drain/refuse-new",
		"a new watch during a shutdown gets 503 with Retry-After, and on HTTP/1.1 Connection: close (RFC 9110 10.2.3, "+
			"15.6.4)",
		harness.Case{Strength: harness.Should, Mode: harness.BothTimes, Needs: harness.Drains, Run: drainRefuseNew}),
	harness.Rule("drain/rate-limited", "if configured, the ends of the watches are spread over the grace period",
		harness.Case{
			Strength: harness.Should, Mode: harness.FakeTime, Needs: harness.Drains | harness.Configurable,
			Setup: harness.Setup{Timing: watchserver.Timing{DrainSpread: drainSpread}}, Run: drainRateLimited,
		}),
	harness.Rule("drain/no-loss",
		"a client that resumes at another server misses nothing written before, during or after the shutdown",
		harness.Case{
			Subject: harness.Both, Mode: harness.EitherTime,
			Needs: harness.OwnCollection | harness.Drains | harness.Replicas | harness.InProcess, Run: drainNoLoss,
		}),
	harness.Rule("drain/deadline", "a client that reads nothing does not delay a shutdown beyond its deadline",
		harness.Case{
			Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.Drains | harness.Configurable,
			Setup: harness.Setup{Limits: watchserver.Limits{WriteTimeout: -1}}, Run: drainDeadline,
		}),
}

const drainSpread = time.Minute
