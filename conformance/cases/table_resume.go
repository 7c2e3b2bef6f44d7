package cases

// resumeCases are those of resourceVersion and resuming.
var resumeCases = []Case{
	{
		ID: "resume/from-rv", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a watch from a past version replays exactly what followed",
		needs: Writes | SoleWriter, run: fromRV,
	},
	{
		ID: "resume/restart", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "a watch that is closed and opened again from its last version has no gap and no repeat",
		needs: Writes | SoleWriter | ConsecutiveVersions, run: restart,
	},
	{
		ID: "resume/cross-transport", Level: Promise, Subject: Both, Transports: all, Mode: "r",
		Rule:  "a watch that is resumed on other transports is one exact history",
		needs: Writes | SoleWriter | ConsecutiveVersions, run: crossTransport,
	},
	{
		ID: "resume/cross-replica", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "a watch is resumed at another server over the same store (KEP-1904)",
		needs: Writes | Replicas | SoleWriter | ConsecutiveVersions, run: crossReplica,
	},
	{
		ID: "resume/rv-unset", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "without a version a watch begins with a state that is not older than any acknowledged write, as ADDED",
		needs: Writes | SoleWriter, run: rvUnset,
	},
	{
		ID: "resume/rv-zero", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "from version 0 a watch begins with any state, then brings the changes",
		needs: Writes | SoleWriter, run: rvZero,
	},
	{
		ID: "resume/rv-exact-no-synthetic", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "from any other version no ADDED is made up for what is there",
		needs: Writes | SoleWriter, run: rvExactNoSynthetic,
	},
	{
		ID: "resume/list-then-watch", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "a list's version is a start at which concurrent writes are neither lost nor repeated",
		needs: Writes | SoleWriter | ConsecutiveVersions, run: listThenWatch,
	},
	{
		ID: "resume/expired", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a watch from before the window is one ERROR of 410 Expired, a list HTTP 410",
		needs: Writes | Compacts | SoleWriter, run: expired,
	},
	{
		ID: "resume/expired-never-skips", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "at every version around the edge of the window a watch is 410 or exact, never later than asked",
		needs: Writes | Compacts | SoleWriter | ConsecutiveVersions, run: expiredNeverSkips,
	},
	{
		ID: "resume/expired-never-skips-bytes", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule:  "the same where the window is bounded by its size",
		setup: slidingWindow,
		needs: Writes | Configurable | SoleWriter | ConsecutiveVersions, run: expiredBytesNeverSkips,
	},
	{
		ID: "resume/compact-while-watching", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a compaction past the version of an open watch that has read everything leaves it exact",
		needs: Writes | Compacts | SoleWriter, run: compactWhileWatching,
	},
	{
		ID: "resume/expired-during-replay", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a slow watcher that the window overruns is ended with 410 and has no hole",
		setup: Setup{SmallBuffers: true},
		needs: Writes | Compacts | Configurable | SoleWriter | ConsecutiveVersions, run: expiredDuringReplay,
	},
	{
		ID: "resume/future-rv", Level: Must, Subject: Server, Transports: all, Mode: "rf",
		Rule:  "a version in the future is waited for, then answered 504, and never by events up to it",
		needs: Writes | SoleWriter | ConsecutiveVersions, run: futureRV,
	},
	{
		ID: "resume/list-future-rv", Level: Should, Subject: Server, Transports: "h1 h2", Mode: "f",
		Rule:  "a list of a version in the future is 504 with cause ResourceVersionTooLarge and Retry-After",
		needs: Writes | SoleWriter, run: listFutureRV,
	},
	{
		ID: "resume/bad-rv", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "a resourceVersion that is no decimal number below 2^64 is answered 400 (RFC 9110 15.5.1)",
		run:  badRV,
	},
	{
		ID: "resume/rv-comparable", Level: Should, Subject: Server, Transports: all, Mode: "r",
		Rule:  "versions are decimal, without leading zeros, grow with each write and stay below 2^128 (KEP-5504)",
		needs: Writes | SoleWriter, run: rvComparable,
	},
	{
		ID: "resume/rv-opaque-client", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a client sends a decimal version back unchanged; any other is an error of code Unsupported, not a loop",
		needs: InProcess, run: rvOpaqueClient,
	},
	{
		ID: "resume/server-restart", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "a server that starts again on a store in memory uses no version twice, and answers those of before by 410",
		needs: Writes | UnrelatedCollection | SoleWriter, run: serverRestart,
	},
	{
		ID: "resume/store-reset", Level: Must, Subject: Both, Transports: all, Mode: "f",
		Rule:  "where versions went back, a client learns that it must begin again",
		needs: Writes | UnrelatedCollection | Drains | InProcess | SoleWriter, run: storeReset,
	},
	{
		ID: "resume/last-event-id", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "Last-Event-ID resumes like resourceVersion; both and different is answered 400 (HTML 9.2.4)",
		needs: Writes | SoleWriter, run: lastEventID,
	},
	{
		ID: "resume/match-rules", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule:  "lists obey the table of resourceVersionMatch, limit and continue in Kubernetes' API concepts",
		needs: Writes | Compacts | SoleWriter, run: matchRules,
	},
}
