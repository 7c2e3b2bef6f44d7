// Package informers has the conformance cases about informers: clients that keep a copy of
// a collection.
package informers

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check the whole client stack: an informer over a client that retries and resumes.
var Cases = []harness.Case{
	harness.Rule("informer/store-equals-list",
		"after any history of writes, cuts and compactions the local store equals a list at the same version",
		harness.Case{
			Subject: harness.Client, Mode: harness.EitherTime,
			Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informerStoreEqualsList,
		}),
	harness.Rule("informer/difference-equals-list",
		"an informer that applies a difference has the same objects as a list", harness.Case{
			Subject: harness.Client, Mode: harness.FakeTime,
			Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informerDifference,
		}),
	harness.Rule("informer/final-state-unknown",
		"an object that disappeared during a relist is reported as deleted, with its last known state, marked as "+
			"possibly outdated", harness.Case{
			Subject: harness.Client, Mode: harness.FakeTime,
			Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informerFinalStateUnknown,
		}),
	harness.Rule("informer/relist-diff",
		"after a relist handlers receive the differences only: no add for a known object", harness.Case{
			Subject: harness.Client, Mode: harness.FakeTime,
			Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informerRelistDiff,
		}),
	harness.Rule("informer/no-old-update",
		"a handler sees the versions of an object in order, each based on the one it saw before, and ends with the "+
			"state in the store", harness.Case{
			Subject: harness.Client, Mode: harness.FakeTime,
			Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informerNoOldUpdate,
		}),
	harness.Rule("informer/has-synced",
		"an informer has synced once its handlers have returned for the first state, and not before", harness.Case{
			Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.InProcess,
			Run: informerHasSynced,
		}),
	harness.Rule("informer/backoff",
		"after 410, 429, 5xx and refused connections an informer waits for a random delay that doubles each time up "+
			"to 30 s, and resets after two healthy minutes",
		harness.Case{Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess, Run: informerBackoff}),
	harness.Rule("informer/late-handler", "a handler registered late receives each object once, and then the changes",
		harness.Case{
			Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.InProcess,
			Run: informerLateHandler,
		}),
	harness.Rule("informer/client-go-against-us",
		"client-go's informers, with and without streaming lists, run unchanged against our server", harness.Case{
			Subject: harness.Both, Transports: "h1 h2",
			CoveredBy: "lives in interop/clients TestInformersAgreeWithAFreshList",
		}),
}
