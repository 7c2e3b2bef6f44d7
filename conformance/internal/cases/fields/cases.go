// Package fields has the conformance cases about projections: lists and watches with the parameter
// fields. The cases are skipped if the responses of the server lack Listwatch-Fields.
package fields

import "github.com/listwatch/listwatch/conformance/harness"

// Cases check the parameter fields.
var Cases = []harness.Case{
	harness.Rule("fields/identity",
		"apiVersion, kind, and the name, namespace, uid and resourceVersion of the metadata are always shown, and labels "+
			"only if requested", harness.Case{Needs: harness.OwnCollection, Run: identity}),
	harness.Rule("fields/longest-path",
		"the longest path that leads to a member decides; other members are shown if every path excludes, or adds below "+
			"an excluded one", harness.Case{Needs: harness.OwnCollection, Run: longestPath}),
	harness.Rule("fields/arrays", "a path applies to every element of an array, whose order and number stay",
		harness.Case{Needs: harness.OwnCollection, Run: arrays}),
	harness.Rule("fields/silent",
		"a change that leaves the reduced object as it was sends no event; ADDED, and DELETED with the last state, are "+
			"always sent", harness.Case{Needs: harness.OwnCollection, Run: silent}),
	harness.Rule("fields/generation",
		"if all paths exclude, a write that changes only excluded members sends no event, although it raises the "+
			"generation", harness.Case{Needs: harness.OwnCollection, Run: generation}),
	harness.Rule("fields/bookmark-moves", "a bookmark passes the changes without an event",
		harness.Case{Needs: harness.OwnCollection, Mode: harness.FakeTime, Run: bookmarkMoves}),
	harness.Rule("fields/resume", "a watch that resumes has the same events as one that was never interrupted",
		harness.Case{Needs: harness.OwnCollection, Run: resume}),
	harness.Rule("fields/list", "a list shows the same reduced objects as a watch, and Listwatch-Fields",
		harness.Case{Needs: harness.OwnCollection, Run: list}),
	harness.Rule("fields/errors",
		"a wrong path, a path that is added and excluded, the exclusion of a member that is always shown, and more than "+
			"64 paths get 400", harness.Case{Run: wrongPaths}),
}
