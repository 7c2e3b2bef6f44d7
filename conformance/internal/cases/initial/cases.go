// Package initial has the conformance cases about initial events, which Kubernetes also
// calls a streaming list (KEP-3157).
package initial

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check initial events.
var Cases = []harness.Case{
	harness.Rule("initial/stream",
		"sendInitialEvents sends ADDED for every object in key order, then a bookmark annotated "+
			"k8s.io/initial-events-end, then changes",
		harness.Case{Needs: harness.OwnCollection, Run: initialStream}),
	harness.Rule("initial/snapshot-exact",
		"the initial events are exactly the state at the version of the bookmark that ends them",
		harness.Case{Needs: harness.OwnCollection, Run: initialSnapshotExact}),
	harness.Rule("initial/fresh",
		"without a version, the initial events include every write acknowledged before the request",
		harness.Case{Needs: harness.OwnCollection, Run: initialFresh}),
	harness.Rule("initial/not-older-than",
		"with a version, the initial events are the state at that version or a later one",
		harness.Case{Needs: harness.OwnCollection, Run: initialNotOlderThan}),
	harness.Rule("initial/one-end-marker", "the end marker occurs once in a stream", harness.Case{
		Needs: harness.OwnCollection | harness.FrequentBookmarks, Setup: harness.BookmarksOften,
		Run: initialOneEndMarker,
	}),
	harness.Rule("initial/match-required",
		"sendInitialEvents without resourceVersionMatch=NotOlderThan gets 422 with a cause that names the field",
		harness.Case{Run: initialMatchRequired}),
	harness.Rule("initial/match-alone", "resourceVersionMatch on a watch without sendInitialEvents gets 422",
		harness.Case{Run: initialMatchAlone}),
	harness.Rule("initial/forbidden-on-list", "sendInitialEvents on a list gets 422",
		harness.Case{Transports: "h1 h2", Run: initialForbiddenOnList}),
	harness.Rule("initial/false", "sendInitialEvents=false without a version starts with the next write",
		harness.Case{Needs: harness.OwnCollection, Run: initialFalse}),
	harness.Rule("initial/legacy",
		"a watch without sendInitialEvents and without a version, or from 0, starts with ADDED for every object",
		harness.Case{Needs: harness.OwnCollection, Run: initialLegacy}),
	harness.Rule("initial/empty",
		"in an empty collection the end marker is the first event, and its version is not zero",
		harness.Case{Needs: harness.OwnCollection, Run: initialEmpty}),
	harness.Rule("initial/writes-during",
		"a concurrent write is either part of the initial events or follows them: never both, never neither",
		harness.Case{Needs: harness.OwnCollection, Run: initialWritesDuring}),
	harness.Rule("initial/cut-short",
		"if a stream breaks before the end marker, a client does not resume from the initial events but requests them "+
			"again",
		harness.Case{
			Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess | harness.StreamsState,
			Run: initialCutShort,
		}),
	harness.Rule("initial/fallback",
		"if a server refuses sendInitialEvents with 400 or 422, a client lists and watches instead, and remembers it",
		harness.Case{
			Subject: harness.Client, Mode: harness.EitherTime, Needs: harness.InProcess | harness.StreamsState,
			Run: initialFallback,
		}),
}
