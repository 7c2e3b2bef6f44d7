// Package resume has the cases about resourceVersion, lists, and watches that resume.
package resume

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases are those of resourceVersion and resuming.
var Cases = []harness.Case{
	{
		ID: "resume/from-rv", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch from a past version replays exactly what followed",
		Needs: harness.Writes | harness.SoleWriter, Run: fromRV,
	},
	{
		ID: "resume/restart", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch that is closed and opened again from its last version has no gap and no repeat",
		Needs: harness.Writes | harness.SoleWriter | harness.ConsecutiveVersions, Run: restart,
	},
	{
		ID: "resume/cross-transport", Level: harness.Promise, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch that is resumed on other transports is one exact history",
		Needs: harness.Writes | harness.SoleWriter | harness.ConsecutiveVersions, Run: crossTransport,
	},
	{
		ID: "resume/cross-replica", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch is resumed at another server over the same store (KEP-1904)",
		Needs: harness.Writes | harness.Replicas | harness.SoleWriter | harness.ConsecutiveVersions, Run: crossReplica,
	},
	{
		ID: "resume/rv-unset", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "without a version a watch begins with a state that is not older than any acknowledged write, as ADDED",
		Needs: harness.Writes | harness.SoleWriter, Run: rvUnset,
	},
	{
		ID: "resume/rv-zero", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "from version 0 a watch begins with any state, then brings the changes",
		Needs: harness.Writes | harness.SoleWriter, Run: rvZero,
	},
	{
		ID: "resume/rv-exact-no-synthetic", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "from any other version no ADDED is made up for what is there",
		Needs: harness.Writes | harness.SoleWriter, Run: rvExactNoSynthetic,
	},
	{
		ID: "resume/list-then-watch", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a list's version is a start at which concurrent writes are neither lost nor repeated",
		Needs: harness.Writes | harness.SoleWriter | harness.ConsecutiveVersions, Run: listThenWatch,
	},
	{
		ID: "resume/expired", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch from before the window is one ERROR of 410 Expired, a list HTTP 410",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter, Run: expired,
	},
	{
		ID: "resume/expired-never-skips", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "at every version around the edge of the window a watch is 410 or exact, never later than asked",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter | harness.ConsecutiveVersions, Run: expiredNeverSkips,
	},
	{
		ID: "resume/expired-never-skips-bytes", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "the same where the window is bounded by its size",
		Setup: slidingWindow,
		Needs: harness.Writes | harness.Configurable | harness.SoleWriter | harness.ConsecutiveVersions, Run: expiredBytesNeverSkips,
	},
	{
		ID: "resume/compact-while-watching", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a compaction past the version of an open watch that has read everything leaves it exact",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter, Run: compactWhileWatching,
	},
	{
		ID: "resume/expired-during-replay", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a slow watcher that the window overruns is ended with 410 and has no hole",
		Setup: harness.Setup{SmallBuffers: true},
		Needs: harness.Writes | harness.Compacts | harness.Configurable | harness.SoleWriter | harness.ConsecutiveVersions, Run: expiredDuringReplay,
	},
	{
		ID: "resume/future-rv", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "rf",
		Rule:  "a version in the future is waited for, then answered 504, and never by events up to it",
		Needs: harness.Writes | harness.SoleWriter | harness.ConsecutiveVersions, Run: futureRV,
	},
	{
		ID: "resume/list-future-rv", Level: harness.Should, Subject: harness.Server, Transports: "h1 h2", Mode: "f",
		Rule:  "a list of a version in the future is 504 with cause ResourceVersionTooLarge and Retry-After",
		Needs: harness.Writes | harness.SoleWriter, Run: listFutureRV,
	},
	{
		ID: "resume/bad-rv", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule: "a resourceVersion that is no decimal number below 2^64 is answered 400 (RFC 9110 15.5.1)",
		Run:  badRV,
	},
	{
		ID: "resume/rv-comparable", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "versions are decimal, without leading zeros, grow with each write and stay below 2^128 (KEP-5504)",
		Needs: harness.Writes | harness.SoleWriter, Run: rvComparable,
	},
	{
		ID: "resume/rv-opaque-client", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a client sends a decimal version back unchanged; any other is an error of code Unsupported, not a loop",
		Needs: harness.InProcess, Run: rvOpaqueClient,
	},
	{
		ID: "resume/server-restart", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a server that starts again on a store in memory uses no version twice, and answers those of before by 410",
		Needs: harness.Writes | harness.UnrelatedCollection | harness.SoleWriter, Run: serverRestart,
	},
	{
		ID: "resume/store-reset", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "f",
		Rule:  "where versions went back, a client learns that it must begin again",
		Needs: harness.Writes | harness.UnrelatedCollection | harness.Drains | harness.InProcess | harness.SoleWriter, Run: storeReset,
	},
	{
		ID: "resume/last-event-id", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Mode: "r",
		Rule:  "Last-Event-ID resumes like resourceVersion; both and different is answered 400 (HTML 9.2.4)",
		Needs: harness.Writes | harness.SoleWriter, Run: lastEventID,
	},
	{
		ID: "resume/match-rules", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Mode: "r",
		Rule:  "lists obey the table of resourceVersionMatch, limit and continue in Kubernetes' API concepts",
		Needs: harness.Writes | harness.Compacts | harness.SoleWriter, Run: matchRules,
	},
}
