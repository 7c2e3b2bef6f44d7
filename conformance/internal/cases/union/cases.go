// Package union has the conformance cases about watches of several collections. The cases are
// skipped if the target has no such watches.
package union

import "github.com/listwatch/listwatch/conformance/harness"

// Cases check watches of several collections.
var Cases = []harness.Case{
	harness.Rule("union/order",
		"the events of all collections of a union come in the order of versions, and none is missing",
		harness.Case{Needs: harness.OwnCollection, Run: order}),
	harness.Rule("union/snapshot",
		"the initial events of a union are the state of all its collections at one version, in the order of the "+
			"parameters, and the bookmark after them has that version",
		harness.Case{Needs: harness.OwnCollection, Run: snapshot}),
	harness.Rule("union/group",
		"the events of one version come together, and no bookmark has that version before all of them",
		harness.Case{CoveredBy: "lives in internal/history TestUnionHasAllLogsAtOneVersion"}),
	harness.Rule("union/resume", "a union resumes all its collections from the version of any event",
		harness.Case{Needs: harness.OwnCollection, Run: resume}),
	harness.Rule("union/last-event-id", "Last-Event-ID resumes all collections of a union",
		harness.Case{Needs: harness.OwnCollection, Run: lastEventID}),
	harness.Rule("union/expired", "a union gets 410 if the history of one of its collections is lost",
		harness.Case{Needs: harness.OwnCollection | harness.Compacts, Run: expired}),
	harness.Rule("union/forbidden", "a union needs the rights for each of its collections",
		harness.Case{
			Setup: harness.Setup{Access: harness.Access{RequireUser: true}},
			Needs: harness.OwnCollection | harness.Configurable, Run: forbidden,
		}),
	harness.Rule("union/bookmark",
		"a bookmark of a union has kind List and apiVersion v1, and a version from which all collections resume",
		harness.Case{
			Setup: harness.BookmarksOften, Needs: harness.OwnCollection | harness.FrequentBookmarks, Run: bookmark,
		}),
	harness.Rule("union/difference",
		"with initialEventsSince and the state of that version, the initial events of a union are the difference of "+
			"all its collections",
		harness.Case{Needs: harness.OwnCollection, Run: difference}),
	harness.Rule("union/conflated",
		"a conflated union skips MODIFIED events of all its collections, and the state of the client is exact at each "+
			"bookmark",
		harness.Case{Mode: harness.BothTimes, Needs: harness.OwnCollection, Run: conflated}),
}
