package cases

import (
	"time"

	"github.com/listwatch/listwatch/watchserver"
)

// drainCases are those of graceful shutdown.
var drainCases = []Case{
	{
		ID: "drain/ends-all", Level: Must, Subject: Server, Transports: all, Mode: "fr",
		Rule:  "a shutdown ends all watches within a second, cleanly, on every transport",
		needs: Writes | Drains | SoleWriter, run: drainEndsAll,
	},
	{
		ID: "drain/final-bookmark", Level: Should, Subject: Server, Transports: all, Mode: "fr",
		Rule:  "the last that a watch with bookmarks gets is one at the newest version (KEP-1904)",
		needs: Writes | Drains | SoleWriter, run: drainFinalBookmark,
	},
	{
		ID: "drain/goaway", Level: Should, Subject: Server, Transports: "h2", Mode: "f",
		Rule:  "a connection of HTTP/2 is told GOAWAY with NO_ERROR before it is closed (RFC 9113 6.8)",
		needs: Writes | Drains | InProcess | SoleWriter, run: drainGoAway,
	},
	{
		ID: "drain/ws-1001", Level: Should, Subject: Server, Transports: "ws", Mode: "fr",
		Rule:  "a WebSocket is closed with code 1001, going away (RFC 6455 7.4.1)",
		needs: Drains, run: drain1001,
	},
	{
		ID: "drain/refuse-new", Level: Should, Subject: Server, Transports: all, Mode: "fr",
		Rule:  "a watch that comes during a shutdown is answered 503 with Retry-After, and on HTTP/1.1 Connection: close (RFC 9110 10.2.3, 15.6.4)",
		needs: Drains, run: drainRefuseNew,
	},
	{
		ID: "drain/rate-limited", Level: Should, Subject: Server, Transports: all, Mode: "f",
		Rule:  "where it is so configured the ends are spread over the time of grace",
		setup: Setup{Timing: watchserver.Timing{DrainSpread: drainSpread}},
		needs: Drains | Configurable, run: drainRateLimited,
	},
	{
		ID: "drain/no-loss", Level: Must, Subject: Both, Transports: all, Mode: "f",
		Rule:  "a client that resumes at another server misses nothing that was written before, during and after the shutdown",
		needs: Writes | Drains | Replicas | InProcess | SoleWriter, run: drainNoLoss,
	},
	{
		ID: "drain/deadline", Level: Must, Subject: Server, Transports: all, Mode: "f",
		Rule:  "a client that reads nothing does not hold up a shutdown past its deadline",
		setup: Setup{Limits: watchserver.Limits{WriteTimeout: -1}},
		needs: Writes | Drains | Configurable | SoleWriter, run: drainDeadline,
	},
}

const drainSpread = time.Minute
