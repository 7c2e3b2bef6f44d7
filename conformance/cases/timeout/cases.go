// Package timeout has the cases about timeouts, pings and idle streams.
package timeout

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// Cases are those of time-outs and heartbeats.
var Cases = []harness.Case{
	{
		ID: "timeout/seconds", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "fr",
		Rule: "timeoutSeconds ends a watch after as many seconds, give or take a tenth (metav1.ListOptions)",
		Run:  timeoutSeconds,
	},
	{
		ID: "timeout/clean-end-form", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "fr",
		Rule: "a watch whose time is up ends as a complete stream does: by the last chunk, END_STREAM, or close 1000 (RFC 9112 7.1, RFC 9113 8.1, RFC 6455 7.4.1)",
		Run:  timeoutCleanEnd,
	},
	{
		ID: "timeout/bad-values", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule: "a timeoutSeconds that is no number, or a negative one, is answered 400",
		Run:  timeoutBadValues,
	},
	{
		ID: "timeout/default-jitter", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "watches without timeoutSeconds end at random between once and twice the server's least time",
		Setup: harness.Setup{Timing: watchserver.Timing{Timeout: leastTime}},
		Needs: harness.Configurable, Run: timeoutDefaultJitter,
	},
	{
		ID: "timeout/activity-independent", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "fr",
		Rule:  "timeoutSeconds ends a busy watch as it does a silent one (metav1.ListOptions: regardless of any activity)",
		Needs: harness.Writes, Run: timeoutWhileBusy,
	},
	{
		ID: "timeout/client-idle", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a client that has heard nothing for its idle limit drops the stream and resumes",
		Needs: harness.InProcess, Run: clientIdle,
	},
	{
		ID: "timeout/heartbeat", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule: "a silent stream shows that it lives, by a comment of server-sent events, a PING or a ping, well within a minute (HTML 9.2.7, RFC 9113 6.7, RFC 6455 5.5.2)",
		Run:  heartbeat,
	},
	{
		ID: "timeout/ws-pong-missing", Level: harness.Promise, Subject: harness.Both, Transports: "ws", Mode: "f",
		Rule:  "a peer that answers no ping is cut off within a minute, and a client answers them (RFC 6455 5.5.3)",
		Needs: harness.Writes, Run: pongMissing,
	},
	{
		ID: "timeout/clock-jump", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:      "what lasts is measured by the monotonic clock, so that nothing ends, or stays, when the clock on the wall is set",
		CoveredBy: "lives in internal/archtest TestSource",
	},
}

const leastTime = 10 * time.Minute
