// Package resume has the cases for resourceVersion, lists, and watches that resume.
package resume

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check resourceVersion, lists and resuming.
var Cases = []harness.Case{
	{
		ID: "resume/from-rv", Needs: harness.OwnCollection, Run: fromRV,
		Rule: "a watch from a past version replays exactly the events after it",
	},
	{
		ID: "resume/restart", Subject: harness.Both, Needs: harness.OwnCollection | harness.ConsecutiveVersions,
		Run:  restart,
		Rule: "a watch that is closed and reopened from its last version has no gap and no repetition",
	},
	{
		ID: "resume/cross-transport", Level: harness.Promise, Subject: harness.Both,
		Needs: harness.OwnCollection | harness.ConsecutiveVersions, Run: crossTransport,
		Rule: "a watch that resumes over other transports sees one exact history",
	},
	{
		ID: "resume/cross-replica", Subject: harness.Both,
		Needs: harness.OwnCollection | harness.Replicas | harness.ConsecutiveVersions, Run: crossReplica,
		Rule: "a watch resumes at another server over the same store (KEP-1904)",
	},
	{
		ID: "resume/rv-unset", Needs: harness.OwnCollection, Run: rvUnset,
		Rule: "without a version a watch starts with ADDED events for a state that includes every acknowledged write",
	},
	{
		ID: "resume/rv-zero", Needs: harness.OwnCollection, Run: rvZero,
		Rule: "from version 0 a watch starts with any available state, then sends the changes",
	},
	{
		ID: "resume/rv-exact-no-synthetic", Needs: harness.OwnCollection, Run: rvExactNoSynthetic,
		Rule: "from any other version a watch sends no synthetic ADDED events",
	},
	{
		ID: "resume/list-then-watch", Subject: harness.Both, Needs: harness.OwnCollection | harness.ConsecutiveVersions,
		Run:  listThenWatch,
		Rule: "a watch from the version of a list neither loses nor repeats concurrent writes",
	},
	{
		ID: "resume/expired", Needs: harness.OwnCollection | harness.Compacts, Run: expired,
		Rule: "a watch from a version before the retained history receives one ERROR event with 410 Expired, a list " +
			"gets HTTP 410",
	},
	{
		ID: "resume/expired-never-skips", Needs: harness.OwnCollection | harness.Compacts | harness.ConsecutiveVersions,
		Run: expiredNeverSkips,
		Rule: "for every version around the oldest retained one a watch is 410 or exact, and never starts later than " +
			"requested",
	},
	{
		ID: "resume/expired-never-skips-bytes", Level: harness.Promise,
		Needs: harness.OwnCollection | harness.Configurable | harness.ConsecutiveVersions, Setup: slidingWindow,
		Run:  expiredBytesNeverSkips,
		Rule: "the same holds if the history is limited by its size",
	},
	{
		ID: "resume/compact-while-watching", Needs: harness.OwnCollection | harness.Compacts, Run: compactWhileWatching,
		Rule: "a compaction past the version of an open watch that has read everything leaves it exact",
	},
	{
		ID:    "resume/expired-during-replay",
		Needs: harness.OwnCollection | harness.Compacts | harness.Configurable | harness.ConsecutiveVersions,
		Setup: harness.Setup{SmallBuffers: true}, Run: expiredDuringReplay,
		Rule: "a slow watcher that retention overtakes ends with 410 and without a gap",
	},
	{
		ID: "resume/future-rv", Mode: harness.BothTimes, Needs: harness.OwnCollection | harness.ConsecutiveVersions,
		Run:  futureRV,
		Rule: "the server waits for a version in the future, then answers 504, and never sends events up to it",
	},
	{
		ID: "resume/list-future-rv", Level: harness.Should, Transports: "h1 h2", Mode: harness.FakeTime,
		Needs: harness.OwnCollection, Run: listFutureRV,
		Rule: "a list of a version in the future gets 504 with cause ResourceVersionTooLarge and Retry-After",
	},
	{
		ID: "resume/bad-rv", Run: badRV,
		Rule: "a resourceVersion that is not a decimal number below 2^64 gets 400 (RFC 9110 15.5.1)",
	},
	{
		ID: "resume/rv-comparable", Level: harness.Should, Needs: harness.OwnCollection, Run: rvComparable,
		Rule: "versions are decimal, without leading zeros, grow with each write and stay below 2^128 (KEP-5504)",
	},
	{
		ID: "resume/rv-opaque-client", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run: rvOpaqueClient,
		Rule: "a client returns a decimal version unchanged; any other version is an error of code Unsupported, not " +
			"a loop",
	},
	{
		ID: "resume/server-restart", Subject: harness.Both, Needs: harness.OwnCollection | harness.UnrelatedCollection,
		Run:  serverRestart,
		Rule: "a server that restarts with a store in memory reuses no version, and answers 410 to earlier ones",
	},
	{
		ID: "resume/store-reset", Subject: harness.Both, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.UnrelatedCollection | harness.Drains | harness.InProcess,
		Run:   storeReset,
		Rule:  "if the versions of the server decrease, a client learns that it must list again",
	},
	{
		ID: "resume/last-event-id", Transports: "h1 h2", Needs: harness.OwnCollection, Run: lastEventID,
		Rule: "Last-Event-ID resumes like resourceVersion, and takes precedence over it, because a browser " +
			"reconnects to the URL that it opened first (HTML 9.2.4)",
	},
	{
		ID: "resume/match-rules", Transports: "h1 h2", Needs: harness.OwnCollection | harness.Compacts, Run: matchRules,
		Rule: "lists follow the table of resourceVersionMatch, limit and continue in Kubernetes' API concepts",
	},
}
