// Package initial has the conformance cases about initial events, which Kubernetes also
// calls a streaming list (KEP-3157).
package initial

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check initial events.
var Cases = []harness.Case{
	{
		ID: "initial/stream", Needs: harness.OwnCollection, Run: initialStream,
		Rule: "sendInitialEvents sends ADDED for every object in key order, then a bookmark annotated " +
			"k8s.io/initial-events-end, then changes",
	},
	{
		ID: "initial/snapshot-exact", Needs: harness.OwnCollection, Run: initialSnapshotExact,
		Rule: "the initial events are exactly the state at the version of the bookmark that ends them",
	},
	{
		ID: "initial/fresh", Needs: harness.OwnCollection, Run: initialFresh,
		Rule: "without a version, the initial events include every write acknowledged before the request",
	},
	{
		ID: "initial/not-older-than", Needs: harness.OwnCollection, Run: initialNotOlderThan,
		Rule: "with a version, the initial events are the state at that version or a later one",
	},
	{
		ID: "initial/one-end-marker", Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.FrequentBookmarks, Run: initialOneEndMarker,
		Rule: "the end marker occurs once in a stream",
	},
	{
		ID: "initial/match-required", Run: initialMatchRequired,
		Rule: "sendInitialEvents without resourceVersionMatch=NotOlderThan gets 422 with a cause that names the field",
	},
	{
		ID: "initial/match-alone", Run: initialMatchAlone,
		Rule: "resourceVersionMatch on a watch without sendInitialEvents gets 422",
	},
	{
		ID: "initial/forbidden-on-list", Transports: "h1 h2", Run: initialForbiddenOnList,
		Rule: "sendInitialEvents on a list gets 422",
	},
	{
		ID: "initial/false", Needs: harness.OwnCollection, Run: initialFalse,
		Rule: "sendInitialEvents=false without a version starts with the next write",
	},
	{
		ID: "initial/legacy", Needs: harness.OwnCollection, Run: initialLegacy,
		Rule: "a watch without sendInitialEvents and without a version, or from 0, starts with ADDED for every object",
	},
	{
		ID: "initial/empty", Needs: harness.OwnCollection, Run: initialEmpty,
		Rule: "in an empty collection the end marker is the first event, and its version is not zero",
	},
	{
		ID: "initial/writes-during", Needs: harness.OwnCollection, Run: initialWritesDuring,
		Rule: "a concurrent write is either part of the initial events or follows them: never both, never neither",
	},
	{
		ID: "initial/cut-short", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run: initialCutShort,
		Rule: "if a stream breaks before the end marker, a client does not resume from the initial events but " +
			"requests them again",
	},
	{
		ID: "initial/fallback", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run: initialFallback,
		Rule: "if a server refuses sendInitialEvents with 400 or 422, a client lists and watches instead, and " +
			"remembers it",
	},
}
