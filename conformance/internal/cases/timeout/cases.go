// Package timeout has the cases for timeouts, pings and idle streams.
package timeout

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// Cases check timeouts and heartbeats.
var Cases = []harness.Case{
	harness.Rule("timeout/seconds", "timeoutSeconds ends a watch after that time, within a tenth (metav1.ListOptions)",
		harness.Case{Mode: harness.BothTimes, Run: timeoutSeconds}),
	harness.Rule("timeout/clean-end-form",
		"a watch whose time is up ends cleanly: with the last chunk, END_STREAM, or close 1000 (RFC 9112 7.1, RFC "+
			"9113 8.1, RFC 6455 7.4.1)",
		harness.Case{Mode: harness.BothTimes, Run: timeoutCleanEnd}),
	harness.Rule("timeout/bad-values", "a timeoutSeconds that is negative or not a number gets 400",
		harness.Case{Strength: harness.Promise, Run: timeoutBadValues}),
	harness.Rule("timeout/default-jitter",
		"watches without timeoutSeconds end at a random time between once and twice the server's minimum", harness.Case{
			Strength: harness.Should, Mode: harness.FakeTime, Needs: harness.Configurable,
			Setup: harness.Setup{Timing: watchserver.Timing{Timeout: minTimeout}}, Run: timeoutDefaultJitter,
		}),
	harness.Rule("timeout/activity-independent",
		"timeoutSeconds ends busy and quiet watches alike (metav1.ListOptions: regardless of any activity)",
		harness.Case{Mode: harness.BothTimes, Needs: harness.Writes, Run: timeoutWhileBusy}),
	harness.Rule("timeout/client-idle",
		"a client that has received nothing for its idle timeout closes the stream and resumes", harness.Case{
			Strength: harness.Promise, Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess,
			Run: clientIdle,
		}),
	harness.Rule("timeout/heartbeat",
		"a quiet stream shows that it is alive by a server-sent comment, a PING or a ping, well within a minute (HTML "+
			"9.2.7, RFC 9113 6.7, RFC 6455 5.5.2)",
		harness.Case{Strength: harness.Promise, Mode: harness.FakeTime, Run: heartbeat}),
	harness.Rule("timeout/ws-pong-missing",
		"a peer that answers no ping is cut off within a minute, and a client answers pings (RFC 6455 5.5.3)",
		harness.Case{
			Strength: harness.Promise, Subject: harness.Both, Transports: "ws", Mode: harness.FakeTime,
			Needs: harness.Writes, Run: pongMissing,
		}),
	harness.Rule("timeout/clock-jump",
		"durations use the monotonic clock: setting the wall clock neither ends nor extends anything", harness.Case{
			Strength: harness.Promise, Mode: harness.FakeTime, CoveredBy: "lives in internal/archtest TestSource",
		}),
}

const minTimeout = 10 * time.Minute
