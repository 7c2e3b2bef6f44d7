// Package timeout has the cases for timeouts, pings and idle streams.
package timeout

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// Cases check timeouts and heartbeats.
var Cases = []harness.Case{
	{
		ID: "timeout/seconds", Mode: harness.BothTimes, Run: timeoutSeconds,
		Rule: "timeoutSeconds ends a watch after that time, within a tenth (metav1.ListOptions)",
	},
	{
		ID: "timeout/clean-end-form", Mode: harness.BothTimes, Run: timeoutCleanEnd,
		Rule: "a watch whose time is up ends cleanly: with the last chunk, END_STREAM, or close 1000 (RFC 9112 7.1, " +
			"RFC 9113 8.1, RFC 6455 7.4.1)",
	},
	{
		ID: "timeout/bad-values", Level: harness.Promise, Run: timeoutBadValues,
		Rule: "a timeoutSeconds that is negative or not a number gets 400",
	},
	{
		ID: "timeout/default-jitter", Level: harness.Should, Mode: harness.FakeTime, Needs: harness.Configurable,
		Setup: harness.Setup{Timing: watchserver.Timing{Timeout: minTimeout}}, Run: timeoutDefaultJitter,
		Rule: "watches without timeoutSeconds end at a random time between once and twice the server's minimum",
	},
	{
		ID: "timeout/activity-independent", Mode: harness.BothTimes, Needs: harness.Writes, Run: timeoutWhileBusy,
		Rule: "timeoutSeconds ends busy and quiet watches alike (metav1.ListOptions: regardless of any activity)",
	},
	{
		ID: "timeout/client-idle", Level: harness.Promise, Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.InProcess, Run: clientIdle,
		Rule: "a client that has received nothing for its idle timeout closes the stream and resumes",
	},
	{
		ID: "timeout/heartbeat", Level: harness.Promise, Mode: harness.FakeTime, Run: heartbeat,
		Rule: "a quiet stream shows that it is alive by a server-sent comment, a PING or a ping, well within a " +
			"minute (HTML 9.2.7, RFC 9113 6.7, RFC 6455 5.5.2)",
	},
	{
		ID: "timeout/ws-pong-missing", Level: harness.Promise, Subject: harness.Both, Transports: "ws",
		Mode: harness.FakeTime, Needs: harness.Writes, Run: pongMissing,
		Rule: "a peer that answers no ping is cut off within a minute, and a client answers pings (RFC 6455 5.5.3)",
	},
	{
		ID: "timeout/clock-jump", Level: harness.Promise, Mode: harness.FakeTime,
		CoveredBy: "lives in internal/archtest TestSource",
		Rule:      "durations use the monotonic clock: setting the wall clock neither ends nor extends anything",
	},
}

const minTimeout = 10 * time.Minute
