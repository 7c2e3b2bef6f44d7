package cases

// informerCases are those of the client stack: an informer over the client that resumes.
var informerCases = []Case{
	{
		ID: "informer/store-equals-list", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "after any history of writes, cuts and compactions the local store equals a list at the same version",
		needs: Writes | SoleWriter | Compacts | InProcess, run: informerStoreEqualsList,
	},
	{
		ID: "informer/final-state-unknown", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "an object that vanished across a relist is told as deleted, with the last state that was seen and a mark that the final one is unknown",
		needs: Writes | SoleWriter | Compacts | InProcess, run: informerFinalStateUnknown,
	},
	{
		ID: "informer/relist-diff", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a relist tells handlers what differs and nothing else: no add of what is known",
		needs: Writes | SoleWriter | Compacts | InProcess, run: informerRelistDiff,
	},
	{
		ID: "informer/no-old-update", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a handler sees the versions of an object in order, each from the one that it saw before, and ends with what the store has",
		needs: Writes | SoleWriter | Compacts | InProcess, run: informerNoOldUpdate,
	},
	{
		ID: "informer/has-synced", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "an informer has synced when its handlers have returned from the first state, and not before",
		needs: Writes | SoleWriter | InProcess, run: informerHasSynced,
	},
	{
		ID: "informer/backoff", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "after 410, 429, 5xx and refused connections an informer waits at random, twice as long each time up to 30 s, and anew after two good minutes",
		needs: InProcess, run: informerBackoff,
	},
	{
		ID: "informer/late-handler", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a handler that is registered late is told of each object once, and then of what changes",
		needs: Writes | SoleWriter | InProcess, run: informerLateHandler,
	},
	{
		ID: "informer/client-go-against-us", Level: Must, Subject: Both, Transports: "h1 h2", Mode: "r",
		Rule:      "client-go's informers, with and without streaming lists, run unchanged against our server",
		CoveredBy: "lives in interop/clientgo TestInformersAgreeWithAFreshList",
	},
}
