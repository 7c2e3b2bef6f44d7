// Package informers has the conformance cases about informers: clients that keep a copy of
// a collection.
package informers

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check the whole client stack: an informer over a client that retries and resumes.
var Cases = []harness.Case{
	{
		ID: "informer/store-equals-list", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "after any history of writes, cuts and compactions the local store equals a " +
			"list at the same version",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informerStoreEqualsList,
	},
	{
		ID: "informer/final-state-unknown", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "an object that disappeared during a relist is reported as deleted, with its " +
			"last known state, marked as possibly outdated",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informerFinalStateUnknown,
	},
	{
		ID: "informer/relist-diff", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "after a relist handlers receive the differences only: no add for a known " +
			"object",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informerRelistDiff,
	},
	{
		ID: "informer/no-old-update", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a handler sees the versions of an object in order, each based on the one it " +
			"saw before, and ends with the state in the store",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informerNoOldUpdate,
	},
	{
		ID: "informer/has-synced", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "an informer has synced once its handlers have returned for the first state, " +
			"and not before",
		Needs: harness.Writes | harness.SoleWriter | harness.InProcess, Run: informerHasSynced,
	},
	{
		ID: "informer/backoff", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "after 410, 429, 5xx and refused connections an informer waits for a random " +
			"delay that doubles each time up to 30 s, and resets after two healthy minutes",
		Needs: harness.InProcess, Run: informerBackoff,
	},
	{
		ID: "informer/late-handler", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a handler registered late receives each object once, and then the changes",
		Needs: harness.Writes | harness.SoleWriter | harness.InProcess, Run: informerLateHandler,
	},
	{
		ID: "informer/client-go-against-us", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Modes: []harness.Mode{harness.RealTime},
		Rule: "client-go's informers, with and without streaming lists, run unchanged " +
			"against our server",
		CoveredBy: "lives in interop/clients TestInformersAgreeWithAFreshList",
	},
}
