package cases

import (
	"time"

	"github.com/listwatch/listwatch/watchserver"
)

// timeoutCases are those of time-outs and heartbeats.
var timeoutCases = []Case{
	{
		ID: "timeout/seconds", Level: Must, Subject: Server, Transports: all, Mode: "fr",
		Rule: "timeoutSeconds ends a watch after as many seconds, give or take a tenth (metav1.ListOptions)",
		run:  timeoutSeconds,
	},
	{
		ID: "timeout/clean-end-form", Level: Must, Subject: Server, Transports: all, Mode: "fr",
		Rule: "a watch whose time is up ends as a complete stream does: by the last chunk, END_STREAM, or close 1000 (RFC 9112 7.1, RFC 9113 8.1, RFC 6455 7.4.1)",
		run:  timeoutCleanEnd,
	},
	{
		ID: "timeout/bad-values", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule: "a timeoutSeconds that is no number, or a negative one, is answered 400",
		run:  timeoutBadValues,
	},
	{
		ID: "timeout/default-jitter", Level: Should, Subject: Server, Transports: all, Mode: "f",
		Rule:  "watches without timeoutSeconds end at random between once and twice the server's least time",
		setup: Setup{Timing: watchserver.Timing{Timeout: leastTime}},
		needs: Configurable, run: timeoutDefaultJitter,
	},
	{
		ID: "timeout/activity-independent", Level: Must, Subject: Server, Transports: all, Mode: "fr",
		Rule:  "timeoutSeconds ends a busy watch as it does a silent one (metav1.ListOptions: regardless of any activity)",
		needs: Writes, run: timeoutWhileBusy,
	},
	{
		ID: "timeout/client-idle", Level: Promise, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a client that has heard nothing for its idle limit drops the stream and resumes",
		needs: InProcess, run: clientIdle,
	},
	{
		ID: "timeout/heartbeat", Level: Promise, Subject: Server, Transports: all, Mode: "f",
		Rule: "a silent stream shows that it lives, by a comment of server-sent events, a PING or a ping, well within a minute (HTML 9.2.7, RFC 9113 6.7, RFC 6455 5.5.2)",
		run:  heartbeat,
	},
	{
		ID: "timeout/ws-pong-missing", Level: Promise, Subject: Both, Transports: "ws", Mode: "f",
		Rule:  "a peer that answers no ping is cut off within a minute, and a client answers them (RFC 6455 5.5.3)",
		needs: Writes, run: pongMissing,
	},
	{
		ID: "timeout/clock-jump", Level: Promise, Subject: Server, Transports: all, Mode: "f",
		Rule:      "what lasts is measured by the monotonic clock, so that nothing ends, or stays, when the clock on the wall is set",
		CoveredBy: "lives in internal/archtest TestSource",
	},
}

const leastTime = 10 * time.Minute
