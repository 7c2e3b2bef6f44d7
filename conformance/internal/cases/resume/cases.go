// Package resume has the cases for resourceVersion, lists, and watches that resume.
package resume

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check resourceVersion, lists and resuming.
var Cases = []harness.Case{
	{
		ID: "resume/from-rv", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a watch from a past version replays exactly the events after it",
		Needs: harness.Writes | harness.SoleWriter, Run: fromRV,
	},
	{
		ID: "resume/restart", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch that is closed and reopened from its last version has no gap and no " +
			"repetition",
		Needs: harness.Writes | harness.SoleWriter | harness.ConsecutiveVersions, Run: restart,
	},
	{
		ID: "resume/cross-transport", Level: harness.Promise, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a watch that resumes over other transports sees one exact history",
		Needs: harness.Writes | harness.SoleWriter | harness.ConsecutiveVersions, Run: crossTransport,
	},
	{
		ID: "resume/cross-replica", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a watch resumes at another server over the same store (KEP-1904)",
		Needs: harness.Writes | harness.Replicas | harness.SoleWriter | harness.ConsecutiveVersions, Run: crossReplica,
	},
	{
		ID: "resume/rv-unset", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "without a version a watch starts with ADDED events for a state that includes " +
			"every acknowledged write",
		Needs: harness.Writes | harness.SoleWriter, Run: rvUnset,
	},
	{
		ID: "resume/rv-zero", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "from version 0 a watch starts with any available state, then sends the " +
			"changes",
		Needs: harness.Writes | harness.SoleWriter, Run: rvZero,
	},
	{
		ID: "resume/rv-exact-no-synthetic", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "from any other version a watch sends no synthetic ADDED events",
		Needs: harness.Writes | harness.SoleWriter, Run: rvExactNoSynthetic,
	},
	{
		ID: "resume/list-then-watch", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch from the version of a list neither loses nor repeats concurrent " +
			"writes",
		Needs: harness.Writes | harness.SoleWriter | harness.ConsecutiveVersions, Run: listThenWatch,
	},
	{
		ID: "resume/expired", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch from a version before the retained history receives one ERROR event " +
			"with 410 Expired, a list gets HTTP 410",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter, Run: expired,
	},
	{
		ID: "resume/expired-never-skips", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "for every version around the oldest retained one a watch is 410 or exact, and " +
			"never starts later than requested",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter | harness.ConsecutiveVersions, Run: expiredNeverSkips,
	},
	{
		ID: "resume/expired-never-skips-bytes", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "the same holds if the history is limited by its size",
		Setup: slidingWindow,
		Needs: harness.Writes | harness.Configurable | harness.SoleWriter | harness.ConsecutiveVersions, Run: expiredBytesNeverSkips,
	},
	{
		ID: "resume/compact-while-watching", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a compaction past the version of an open watch that has read everything " +
			"leaves it exact",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter, Run: compactWhileWatching,
	},
	{
		ID: "resume/expired-during-replay", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a slow watcher that retention overtakes ends with 410 and without a gap",
		Setup: harness.Setup{SmallBuffers: true},
		Needs: harness.Writes | harness.Compacts | harness.Configurable | harness.SoleWriter | harness.ConsecutiveVersions, Run: expiredDuringReplay,
	},
	{
		ID: "resume/future-rv", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime, harness.FakeTime},
		Rule: "the server waits for a version in the future, then answers 504, and never " +
			"sends events up to it",
		Needs: harness.Writes | harness.SoleWriter | harness.ConsecutiveVersions, Run: futureRV,
	},
	{
		ID: "resume/list-future-rv", Level: harness.Should, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.FakeTime},
		Rule: "a list of a version in the future gets 504 with cause ResourceVersionTooLarge " +
			"and Retry-After",
		Needs: harness.Writes | harness.SoleWriter, Run: listFutureRV,
	},
	{
		ID: "resume/bad-rv", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a resourceVersion that is not a decimal number below 2^64 gets 400 (RFC 9110 " +
			"15.5.1)",
		Run: badRV,
	},
	{
		ID: "resume/rv-comparable", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "versions are decimal, without leading zeros, grow with each write and stay " +
			"below 2^128 (KEP-5504)",
		Needs: harness.Writes | harness.SoleWriter, Run: rvComparable,
	},
	{
		ID: "resume/rv-opaque-client", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client returns a decimal version unchanged; any other version is an error " +
			"of code Unsupported, not a loop",
		Needs: harness.InProcess, Run: rvOpaqueClient,
	},
	{
		ID: "resume/server-restart", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a server that restarts with a store in memory reuses no version, and answers " +
			"410 to earlier ones",
		Needs: harness.Writes | harness.UnrelatedCollection | harness.SoleWriter, Run: serverRestart,
	},
	{
		ID: "resume/store-reset", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "if the versions of the server decrease, a client learns that it must list again",
		Needs: harness.Writes | harness.UnrelatedCollection | harness.Drains | harness.InProcess | harness.SoleWriter, Run: storeReset,
	},
	{
		ID: "resume/last-event-id", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "Last-Event-ID resumes like resourceVersion, and takes precedence over it, because " +
			"a browser reconnects to the URL that it opened first (HTML 9.2.4)",
		Needs: harness.Writes | harness.SoleWriter, Run: lastEventID,
	},
	{
		ID: "resume/match-rules", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "lists follow the table of resourceVersionMatch, limit and continue in " +
			"Kubernetes' API concepts",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter, Run: matchRules,
	},
}
