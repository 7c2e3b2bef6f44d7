// Package informers has the cases about a client that keeps a copy of a collection.
package informers

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases are those of the client stack: an informer over the client that resumes.
var Cases = []harness.Case{
	{
		ID: "informer/store-equals-list", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "after any history of writes, cuts and compactions the local store equals a list at the same version",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informerStoreEqualsList,
	},
	{
		ID: "informer/final-state-unknown", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "an object that vanished across a relist is told as deleted, with the last state that was seen and a mark that the final one is unknown",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informerFinalStateUnknown,
	},
	{
		ID: "informer/relist-diff", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a relist tells handlers what differs and nothing else: no add of what is known",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informerRelistDiff,
	},
	{
		ID: "informer/no-old-update", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a handler sees the versions of an object in order, each from the one that it saw before, and ends with what the store has",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informerNoOldUpdate,
	},
	{
		ID: "informer/has-synced", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "an informer has synced when its handlers have returned from the first state, and not before",
		Needs: harness.Writes | harness.SoleWriter | harness.InProcess, Run: informerHasSynced,
	},
	{
		ID: "informer/backoff", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "after 410, 429, 5xx and refused connections an informer waits at random, twice as long each time up to 30 s, and anew after two good minutes",
		Needs: harness.InProcess, Run: informerBackoff,
	},
	{
		ID: "informer/late-handler", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a handler that is registered late is told of each object once, and then of what changes",
		Needs: harness.Writes | harness.SoleWriter | harness.InProcess, Run: informerLateHandler,
	},
	{
		ID: "informer/client-go-against-us", Level: harness.Must, Subject: harness.Both, Transports: "h1 h2", Mode: "r",
		Rule:      "client-go's informers, with and without streaming lists, run unchanged against our server",
		CoveredBy: "lives in interop/clients TestInformersAgreeWithAFreshList",
	},
}
