package cases

// initialCases are those of initial events, also called a streaming list (KEP-3157).
var initialCases = []Case{
	{
		ID: "initial/stream", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "sendInitialEvents gives ADDED for all that is there, in key order, then a bookmark annotated k8s.io/initial-events-end, then changes",
		needs: Writes | SoleWriter, run: initialStream,
	},
	{
		ID: "initial/snapshot-exact", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "the initial events are the state at the version of the bookmark that ends them",
		needs: Writes | SoleWriter, run: initialSnapshotExact,
	},
	{
		ID: "initial/fresh", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "without a version, the initial events are not older than any write acknowledged before the request",
		needs: Writes | SoleWriter, run: initialFresh,
	},
	{
		ID: "initial/not-older-than", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "with a version, the initial events are of that version or a later one",
		needs: Writes | SoleWriter, run: initialNotOlderThan,
	},
	{
		ID: "initial/one-end-marker", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "the mark of the end comes once in a stream",
		needs: Writes | SoleWriter | Configurable, setup: eagerBookmarks, run: initialOneEndMarker,
	},
	{
		ID: "initial/match-required", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "sendInitialEvents without resourceVersionMatch=NotOlderThan is answered 422 with a cause that names the field",
		run:  initialMatchRequired,
	},
	{
		ID: "initial/match-alone", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule: "resourceVersionMatch on a watch without sendInitialEvents is answered 422",
		run:  initialMatchAlone,
	},
	{
		ID: "initial/forbidden-on-list", Level: Must, Subject: Server, Transports: "h1 h2", Mode: "r",
		Rule: "sendInitialEvents on a list is answered 422",
		run:  initialForbiddenOnList,
	},
	{
		ID: "initial/false", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "sendInitialEvents=false without a version begins with the next write",
		needs: Writes | SoleWriter, run: initialFalse,
	},
	{
		ID: "initial/legacy", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a watch without sendInitialEvents and without a version, or from 0, begins with ADDED for all that is there",
		needs: Writes | SoleWriter, run: initialLegacy,
	},
	{
		ID: "initial/empty", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "where nothing is there, the mark of the end comes first",
		needs: Writes | SoleWriter, run: initialEmpty,
	},
	{
		ID: "initial/writes-during", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a write that races with the initial events is in them or behind them: never in both, never in neither",
		needs: Writes | SoleWriter, run: initialWritesDuring,
	},
	{
		ID: "initial/cut-short", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "where the stream breaks before the mark of the end, a client does not resume from the initial events, but has them all again",
		needs: InProcess, run: initialCutShort,
	},
	{
		ID: "initial/fallback", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "where a server refuses sendInitialEvents by 400 or 422, a client lists and watches instead, and remembers that",
		needs: InProcess, run: initialFallback,
	},
}
