// Package resume has the cases for resourceVersion, lists, and watches that resume.
package resume

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check resourceVersion, lists and resuming.
var Cases = []harness.Case{
	harness.Rule("resume/from-rv", "a watch from a past version replays exactly the events after it",
		harness.Case{Needs: harness.OwnCollection, Run: fromRV}),
	harness.Rule("resume/restart",
		"a watch that is closed and reopened from its last version has no gap and no repetition",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection | harness.ConsecutiveVersions, Run: restart}),
	harness.Rule("resume/cross-transport", "a watch that resumes over other transports sees one exact history",
		harness.Case{
			Strength: harness.Promise, Subject: harness.Both,
			Needs: harness.OwnCollection | harness.ConsecutiveVersions, Run: crossTransport,
		}),
	harness.Rule("resume/cross-replica", "a watch resumes at another server over the same store (KEP-1904)",
		harness.Case{
			Subject: harness.Both, Needs: harness.OwnCollection | harness.Replicas | harness.ConsecutiveVersions,
			Run: crossReplica,
		}),
	harness.Rule("resume/rv-unset",
		"without a version a watch starts with ADDED events for a state that includes every acknowledged write",
		harness.Case{Needs: harness.OwnCollection, Run: rvUnset}),
	harness.Rule("resume/rv-zero", "from version 0 a watch starts with any available state, then sends the changes",
		harness.Case{Needs: harness.OwnCollection, Run: rvZero}),
	harness.Rule("resume/rv-exact-no-synthetic", "from any other version a watch sends no synthetic ADDED events",
		harness.Case{Needs: harness.OwnCollection, Run: rvExactNoSynthetic}),
	harness.Rule("resume/list-then-watch",
		"a watch from the version of a list neither loses nor repeats concurrent writes", harness.Case{
			Subject: harness.Both, Needs: harness.OwnCollection | harness.ConsecutiveVersions, Run: listThenWatch,
		}),
	harness.Rule("resume/expired",
		"a watch from a version before the retained history receives one ERROR event with 410 Expired, a list gets "+
			"HTTP 410",
		harness.Case{Needs: harness.OwnCollection | harness.Compacts, Run: expired}),
	harness.Rule("resume/expired-never-skips",
		"for every version around the oldest retained one a watch is 410 or exact, and never starts later than "+
			"requested", harness.Case{
			Needs: harness.OwnCollection | harness.Compacts | harness.ConsecutiveVersions, Run: expiredNeverSkips,
		}),
	harness.Rule("resume/expired-never-skips-bytes", "the same holds if the history is limited by its size",
		harness.Case{
			Strength: harness.Promise,
			Needs:    harness.OwnCollection | harness.Configurable | harness.ConsecutiveVersions,
			Setup:    slidingWindow, Run: expiredBytesNeverSkips,
		}),
	harness.Rule("resume/compact-while-watching",
		"a compaction past the version of an open watch that has read everything leaves it exact",
		harness.Case{Needs: harness.OwnCollection | harness.Compacts, Run: compactWhileWatching}),
	harness.Rule("resume/expired-during-replay",
		"a slow watcher that retention overtakes ends with 410 and without a gap", harness.Case{
			Needs: harness.OwnCollection | harness.Compacts | harness.Configurable | harness.ConsecutiveVersions,
			Setup: harness.Setup{SmallBuffers: true}, Run: expiredDuringReplay,
		}),
	harness.Rule("resume/future-rv",
		"the server waits for a version in the future, then answers 504, and never sends events up to it", harness.Case{
			Mode: harness.BothTimes, Needs: harness.OwnCollection | harness.ConsecutiveVersions, Run: futureRV,
		}),
	harness.Rule("resume/list-future-rv",
		"a list of a version in the future gets 504 with cause ResourceVersionTooLarge and Retry-After", harness.Case{
			Strength: harness.Should, Transports: "h1 h2", Mode: harness.FakeTime, Needs: harness.OwnCollection,
			Run: listFutureRV,
		}),
	harness.Rule("resume/bad-rv",
		"a resourceVersion that is not a decimal number below 2^64 gets 400 (RFC 9110 15.5.1)",
		harness.Case{Run: badRV}),
	harness.Rule("resume/rv-comparable",
		"versions are decimal, without leading zeros, grow with each write and stay below 2^128 (KEP-5504)",
		harness.Case{Strength: harness.Should, Needs: harness.OwnCollection, Run: rvComparable}),
	harness.Rule("resume/rv-opaque-client",
		"a client returns a version unchanged, or reports one that is not decimal as an error of code Unsupported",
		harness.Case{Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess, Run: rvOpaqueClient}),
	harness.Rule("resume/silent-ends",
		"a client whose watches from one version end at once and without an event, three times in a row, requests the "+
			"state or reports that the history has expired", harness.Case{
			Strength: harness.Should, Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess,
			Run: silentEnds,
		}),
	harness.Rule("resume/server-restart",
		"a server that restarts reuses no version; a watch from an earlier one is exact, or 410 if history was lost",
		harness.Case{
			Subject: harness.Both, Needs: harness.OwnCollection | harness.Restarts, Run: serverRestart,
		}),
	harness.Rule("resume/store-reset",
		"if the versions of the server decrease, a client learns that it must list again", harness.Case{
			Subject: harness.Both, Mode: harness.EitherTime,
			Needs: harness.OwnCollection | harness.UnrelatedCollection | harness.Drains | harness.InProcess,
			Run:   storeReset,
		}),
	harness.Rule("resume/last-event-id",
		"Last-Event-ID resumes like resourceVersion, and takes precedence over it, because a browser reconnects to "+
			"the URL that it opened first (HTML 9.2.4)",
		harness.Case{Transports: "h1 h2", Needs: harness.OwnCollection, Run: lastEventID}),
	harness.Rule("resume/match-rules",
		"lists follow the table of resourceVersionMatch, limit and continue in Kubernetes' API concepts",
		harness.Case{Transports: "h1 h2", Needs: harness.OwnCollection | harness.Compacts, Run: matchRules}),
}
