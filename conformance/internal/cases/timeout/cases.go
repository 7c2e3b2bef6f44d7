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
		ID: "timeout/seconds", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "timeoutSeconds ends a watch after that time, within a tenth " +
			"(metav1.ListOptions)",
		Run: timeoutSeconds,
	},
	{
		ID: "timeout/clean-end-form", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "a watch whose time is up ends cleanly: with the last chunk, END_STREAM, or " +
			"close 1000 (RFC 9112 7.1, RFC 9113 8.1, RFC 6455 7.4.1)",
		Run: timeoutCleanEnd,
	},
	{
		ID: "timeout/bad-values", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a timeoutSeconds that is negative or not a number gets 400",
		Run:  timeoutBadValues,
	},
	{
		ID: "timeout/default-jitter", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "watches without timeoutSeconds end at a random time between once and twice " +
			"the server's minimum",
		Setup: harness.Setup{Timing: watchserver.Timing{Timeout: minTimeout}},
		Needs: harness.Configurable, Run: timeoutDefaultJitter,
	},
	{
		ID: "timeout/activity-independent", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "timeoutSeconds ends busy and quiet watches alike (metav1.ListOptions: " +
			"regardless of any activity)",
		Needs: harness.Writes, Run: timeoutWhileBusy,
	},
	{
		ID: "timeout/client-idle", Level: harness.Promise, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client that has received nothing for its idle timeout closes the stream and " +
			"resumes",
		Needs: harness.InProcess, Run: clientIdle,
	},
	{
		ID: "timeout/heartbeat", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a quiet stream shows that it is alive by a server-sent comment, a PING or a " +
			"ping, well within a minute (HTML 9.2.7, RFC 9113 6.7, RFC 6455 5.5.2)",
		Run: heartbeat,
	},
	{
		ID: "timeout/ws-pong-missing", Level: harness.Promise, Subject: harness.Both, Transports: "ws", Modes: []harness.Mode{harness.FakeTime},
		Rule: "a peer that answers no ping is cut off within a minute, and a client answers " +
			"pings (RFC 6455 5.5.3)",
		Needs: harness.Writes, Run: pongMissing,
	},
	{
		ID: "timeout/clock-jump", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "durations use the monotonic clock: setting the wall clock neither ends " +
			"nor extends anything",
		CoveredBy: "lives in internal/archtest TestSource",
	},
}

const minTimeout = 10 * time.Minute
