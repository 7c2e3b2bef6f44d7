package cases

// resumeCases are those of resourceVersion and resuming.
var resumeCases = []Case{
	{
		ID: "resume/from-rv", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a watch from a past version replays exactly what followed",
		needs: Writes | Alone, run: fromRV,
	},
	{
		ID: "resume/restart", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "a watch that is closed and opened again from its last version has no gap and no repeat",
		needs: Writes | Alone | Dense, run: restart,
	},
	{
		ID: "resume/cross-transport", Level: Promise, Subject: Both, On: all, Lane: "r",
		Says:  "a watch that is resumed on other transports is one exact history",
		needs: Writes | Alone | Dense, run: crossTransport,
	},
	{
		ID: "resume/cross-replica", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "a watch is resumed at another server over the same store (KEP-1904)",
		needs: Writes | Replicas | Alone | Dense, run: crossReplica,
	},
	{
		ID: "resume/rv-unset", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "without a version a watch begins with a state that is not older than any acknowledged write, as ADDED",
		needs: Writes | Alone, run: rvUnset,
	},
	{
		ID: "resume/rv-zero", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "from version 0 a watch begins with any state, then brings the changes",
		needs: Writes | Alone, run: rvZero,
	},
	{
		ID: "resume/rv-exact-no-synthetic", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "from any other version no ADDED is made up for what is there",
		needs: Writes | Alone, run: rvExactNoSynthetic,
	},
	{
		ID: "resume/list-then-watch", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "a list's version is a start at which concurrent writes are neither lost nor repeated",
		needs: Writes | Alone | Dense, run: listThenWatch,
	},
	{
		ID: "resume/expired", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a watch from before the window is one ERROR of 410 Expired, a list HTTP 410",
		needs: Writes | Compacts | Alone, run: expired,
	},
	{
		ID: "resume/expired-never-skips", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "at every version around the edge of the window a watch is 410 or exact, never later than asked",
		needs: Writes | Compacts | Alone | Dense, run: expiredNeverSkips,
	},
	{
		ID: "resume/expired-never-skips-bytes", Level: Promise, Subject: Server, On: all, Lane: "r",
		Says:  "the same where the window is bounded by its size",
		setup: slidingWindow,
		needs: Writes | Setups | Alone | Dense, run: expiredBytesNeverSkips,
	},
	{
		ID: "resume/compact-while-watching", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a compaction past the version of an open watch that has read everything leaves it exact",
		needs: Writes | Compacts | Alone, run: compactWhileWatching,
	},
	{
		ID: "resume/expired-during-replay", Level: Must, Subject: Server, On: all, Lane: "r",
		Says:  "a slow watcher that the window overruns is ended with 410 and has no hole",
		setup: Setup{Narrow: true},
		needs: Writes | Compacts | Setups | Alone | Dense, run: expiredDuringReplay,
	},
	{
		ID: "resume/future-rv", Level: Must, Subject: Server, On: all, Lane: "rf",
		Says:  "a version in the future is waited for, then answered 504, and never by events up to it",
		needs: Writes | Alone | Dense, run: futureRV,
	},
	{
		ID: "resume/list-future-rv", Level: Should, Subject: Server, On: "h1 h2", Lane: "f",
		Says:  "a list of a version in the future is 504 with cause ResourceVersionTooLarge and Retry-After",
		needs: Writes | Alone, run: listFutureRV,
	},
	{
		ID: "resume/bad-rv", Level: Must, Subject: Server, On: all, Lane: "r",
		Says: "a resourceVersion that is no decimal number below 2^64 is answered 400 (RFC 9110 15.5.1)",
		run:  badRV,
	},
	{
		ID: "resume/rv-comparable", Level: Should, Subject: Server, On: all, Lane: "r",
		Says:  "versions are decimal, without leading zeros, grow with each write and stay below 2^128 (KEP-5504)",
		needs: Writes | Alone, run: rvComparable,
	},
	{
		ID: "resume/rv-opaque-client", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "a client sends a decimal version back unchanged; any other is an error of code Unsupported, not a loop",
		needs: Inside, run: rvOpaqueClient,
	},
	{
		ID: "resume/server-restart", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "a server that starts again on a store in memory uses no version twice, and answers those of before by 410",
		needs: Writes | Lives | Alone, run: serverRestart,
	},
	{
		ID: "resume/store-reset", Level: Must, Subject: Both, On: all, Lane: "f",
		Says:  "where versions went back, a client learns that it must begin again",
		needs: Writes | Lives | Drains | Inside | Alone, run: storeReset,
	},
	{
		ID: "resume/last-event-id", Level: Must, Subject: Server, On: "h1 h2", Lane: "r",
		Says:  "Last-Event-ID resumes like resourceVersion; both and different is answered 400 (HTML 9.2.4)",
		needs: Writes | Alone, run: lastEventID,
	},
	{
		ID: "resume/match-rules", Level: Must, Subject: Server, On: "h1 h2", Lane: "r",
		Says:  "lists obey the table of resourceVersionMatch, limit and continue in Kubernetes' API concepts",
		needs: Writes | Compacts | Alone, run: matchRules,
	},
}
