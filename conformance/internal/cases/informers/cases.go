// Package informers has the conformance cases about informers: clients that keep a copy of
// a collection.
package informers

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check the whole client stack: an informer over a client that retries and resumes.
var Cases = []harness.Case{
	{
		ID: "informer/store-equals-list", Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informerStoreEqualsList,
		Rule: "after any history of writes, cuts and compactions the local store equals a list at the same version",
	},
	{
		ID: "informer/final-state-unknown", Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informerFinalStateUnknown,
		Rule: "an object that disappeared during a relist is reported as deleted, with its last known state, marked " +
			"as possibly outdated",
	},
	{
		ID: "informer/relist-diff", Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informerRelistDiff,
		Rule: "after a relist handlers receive the differences only: no add for a known object",
	},
	{
		ID: "informer/no-old-update", Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informerNoOldUpdate,
		Rule: "a handler sees the versions of an object in order, each based on the one it saw before, and ends with " +
			"the state in the store",
	},
	{
		ID: "informer/has-synced", Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.InProcess, Run: informerHasSynced,
		Rule: "an informer has synced once its handlers have returned for the first state, and not before",
	},
	{
		ID: "informer/backoff", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run: informerBackoff,
		Rule: "after 410, 429, 5xx and refused connections an informer waits for a random delay that doubles each " +
			"time up to 30 s, and resets after two healthy minutes",
	},
	{
		ID: "informer/late-handler", Subject: harness.Client, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.InProcess, Run: informerLateHandler,
		Rule: "a handler registered late receives each object once, and then the changes",
	},
	{
		ID: "informer/client-go-against-us", Subject: harness.Both, Transports: "h1 h2",
		CoveredBy: "lives in interop/clients TestInformersAgreeWithAFreshList",
		Rule:      "client-go's informers, with and without streaming lists, run unchanged against our server",
	},
}
