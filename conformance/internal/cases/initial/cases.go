// Package initial has the conformance cases about initial events, which Kubernetes also
// calls a streaming list (KEP-3157).
package initial

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check initial events.
var Cases = []harness.Case{
	{
		ID: "initial/stream", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "sendInitialEvents sends ADDED for every object in key order, then a bookmark " +
			"annotated k8s.io/initial-events-end, then changes",
		Needs: harness.Writes | harness.SoleWriter, Run: initialStream,
	},
	{
		ID: "initial/snapshot-exact", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "the initial events are exactly the state at the version of the bookmark that " +
			"ends them",
		Needs: harness.Writes | harness.SoleWriter, Run: initialSnapshotExact,
	},
	{
		ID: "initial/fresh", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "without a version, the initial events include every write acknowledged before " +
			"the request",
		Needs: harness.Writes | harness.SoleWriter, Run: initialFresh,
	},
	{
		ID: "initial/not-older-than", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "with a version, the initial events are the state at that version or a later " +
			"one",
		Needs: harness.Writes | harness.SoleWriter, Run: initialNotOlderThan,
	},
	{
		ID: "initial/one-end-marker", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "the end marker occurs once in a stream",
		Needs: harness.Writes | harness.SoleWriter | harness.Configurable, Setup: harness.FrequentBookmarks, Run: initialOneEndMarker,
	},
	{
		ID: "initial/match-required", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "sendInitialEvents without resourceVersionMatch=NotOlderThan gets 422 with a " +
			"cause that names the field",
		Run: initialMatchRequired,
	},
	{
		ID: "initial/match-alone", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "resourceVersionMatch on a watch without sendInitialEvents gets 422",
		Run:  initialMatchAlone,
	},
	{
		ID: "initial/forbidden-on-list", Level: harness.Must, Subject: harness.Server, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "sendInitialEvents on a list gets 422",
		Run:  initialForbiddenOnList,
	},
	{
		ID: "initial/false", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "sendInitialEvents=false without a version starts with the next write",
		Needs: harness.Writes | harness.SoleWriter, Run: initialFalse,
	},
	{
		ID: "initial/legacy", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch without sendInitialEvents and without a version, or from 0, starts " +
			"with ADDED for every object",
		Needs: harness.Writes | harness.SoleWriter, Run: initialLegacy,
	},
	{
		ID: "initial/empty", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "in an empty collection the end marker is the first event, and its version is not " +
			"zero",
		Needs: harness.Writes | harness.SoleWriter, Run: initialEmpty,
	},
	{
		ID: "initial/writes-during", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a concurrent write is either part of the initial events or follows them: " +
			"never both, never neither",
		Needs: harness.Writes | harness.SoleWriter, Run: initialWritesDuring,
	},
	{
		ID: "initial/cut-short", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "if a stream breaks before the end marker, a client does not resume from the " +
			"initial events but requests them again",
		Needs: harness.InProcess, Run: initialCutShort,
	},
	{
		ID: "initial/fallback", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "if a server refuses sendInitialEvents with 400 or 422, a client lists and " +
			"watches instead, and remembers it",
		Needs: harness.InProcess, Run: initialFallback,
	},
}
