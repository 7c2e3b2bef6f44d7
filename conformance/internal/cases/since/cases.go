// Package since has the conformance cases about differences: initial events for a client that has
// an earlier state. The cases are skipped if the server sends no listwatch.dev/state.
package since

import "github.com/listwatch/listwatch/conformance/harness"

// Cases check initialEventsSince.
var Cases = []harness.Case{
	harness.Rule("since/difference",
		"with initialEventsSince and the state of that version, the initial events are ADDED for what was written "+
			"since, DELETED for what is gone, and a bookmark with listwatch.dev/initial-events-since",
		harness.Case{Needs: harness.OwnCollection, Run: difference}),
	harness.Rule("since/whole-if-unknown",
		"without the state, or with a version that the server has not reached, the initial events are the whole state",
		harness.Case{Needs: harness.OwnCollection, Run: wholeIfUnknown}),
	harness.Rule("since/other-state", "the state of another selection gets the whole state",
		harness.Case{Needs: harness.OwnCollection, Run: otherState}),
	harness.Rule("since/horizon",
		"after a compaction a client gets an exact difference or the whole state, and never a part of either",
		harness.Case{Needs: harness.OwnCollection | harness.Compacts, Run: horizon}),
	harness.Rule("since/leaves-selector", "an object that no longer matches the selector is DELETED in a difference",
		harness.Case{Needs: harness.OwnCollection, Run: leavesSelector}),
	harness.Rule("since/reenters-selector",
		"an object that left the selector and matches again is only ADDED in a difference",
		harness.Case{Needs: harness.OwnCollection, Run: reentersSelector}),
	harness.Rule("since/recreated", "an object that was deleted and created again is only ADDED in a difference",
		harness.Case{Needs: harness.OwnCollection, Run: recreated}),
	harness.Rule("since/earlier-version",
		"a version before the client's state, with a newer resourceVersion, gets everything written since that version",
		harness.Case{Needs: harness.OwnCollection, Run: earlierVersion}),
	harness.Rule("since/no-foreign-keys",
		"a difference names no object that was never in the selection since its version",
		harness.Case{Needs: harness.OwnCollection, Run: noForeignKeys}),
}
