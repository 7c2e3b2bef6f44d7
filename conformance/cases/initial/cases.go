// Package initial has the cases about initial events (streaming lists, KEP-3157).
package initial

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases are those of initial events, also called a streaming list (KEP-3157).
var Cases = []harness.Case{
	{
		ID: "initial/stream", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "sendInitialEvents gives ADDED for all that is there, in key order, then a bookmark annotated k8s.io/initial-events-end, then changes",
		Needs: harness.Writes | harness.SoleWriter, Run: initialStream,
	},
	{
		ID: "initial/snapshot-exact", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "the initial events are the state at the version of the bookmark that ends them",
		Needs: harness.Writes | harness.SoleWriter, Run: initialSnapshotExact,
	},
	{
		ID: "initial/fresh", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "without a version, the initial events are not older than any write acknowledged before the request",
		Needs: harness.Writes | harness.SoleWriter, Run: initialFresh,
	},
	{
		ID: "initial/not-older-than", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "with a version, the initial events are of that version or a later one",
		Needs: harness.Writes | harness.SoleWriter, Run: initialNotOlderThan,
	},
	{
		ID: "initial/one-end-marker", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "the mark of the end comes once in a stream",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: initialOneEndMarker,
	},
	{
		ID: "initial/match-required", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule: "sendInitialEvents without resourceVersionMatch=NotOlderThan is answered 422 with a cause that names the field",
		Run:  initialMatchRequired,
	},
	{
		ID: "initial/match-alone", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule: "resourceVersionMatch on a watch without sendInitialEvents is answered 422",
		Run:  initialMatchAlone,
	},
	{
		ID: "initial/forbidden-on-list", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Mode: "r",
		Rule: "sendInitialEvents on a list is answered 422",
		Run:  initialForbiddenOnList,
	},
	{
		ID: "initial/false", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "sendInitialEvents=false without a version begins with the next write",
		Needs: harness.Writes | harness.SoleWriter, Run: initialFalse,
	},
	{
		ID: "initial/legacy", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a watch without sendInitialEvents and without a version, or from 0, begins with ADDED for all that is there",
		Needs: harness.Writes | harness.SoleWriter, Run: initialLegacy,
	},
	{
		ID: "initial/empty", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "where nothing is there, the mark of the end comes first",
		Needs: harness.Writes | harness.SoleWriter, Run: initialEmpty,
	},
	{
		ID: "initial/writes-during", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "a write that races with the initial events is in them or behind them: never in both, never in neither",
		Needs: harness.Writes | harness.SoleWriter, Run: initialWritesDuring,
	},
	{
		ID: "initial/cut-short", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "where the stream breaks before the mark of the end, a client does not resume from the initial events, but has them all again",
		Needs: harness.InProcess, Run: initialCutShort,
	},
	{
		ID: "initial/fallback", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "where a server refuses sendInitialEvents by 400 or 422, a client lists and watches instead, and remembers that",
		Needs: harness.InProcess, Run: initialFallback,
	},
}
