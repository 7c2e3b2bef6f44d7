package cases

// informerCases are those of the client stack: an informer over the client that resumes.
var informerCases = []Case{
	{
		ID: "informer/store-equals-list", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "after any history of writes, cuts and compactions the local store equals a list at the same version",
		needs: Writes | Alone | Compacts | Inside, run: informerStoreEqualsList,
	},
	{
		ID: "informer/final-state-unknown", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "an object that vanished across a relist is told as deleted, with the last state that was seen and a mark that the final one is unknown",
		needs: Writes | Alone | Compacts | Inside, run: informerFinalStateUnknown,
	},
	{
		ID: "informer/relist-diff", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "a relist tells handlers what differs and nothing else: no add of what is known",
		needs: Writes | Alone | Compacts | Inside, run: informerRelistDiff,
	},
	{
		ID: "informer/no-old-update", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "a handler sees the versions of an object in order, each from the one that it saw before, and ends with what the store has",
		needs: Writes | Alone | Compacts | Inside, run: informerNoOldUpdate,
	},
	{
		ID: "informer/has-synced", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "an informer has synced when its handlers have returned from the first state, and not before",
		needs: Writes | Alone | Inside, run: informerHasSynced,
	},
	{
		ID: "informer/backoff", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "after 410, 429, 5xx and refused connections an informer waits at random, twice as long each time up to 30 s, and anew after two good minutes",
		needs: Inside, run: informerBackoff,
	},
	{
		ID: "informer/late-handler", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "a handler that is registered late is told of each object once, and then of what changes",
		needs: Writes | Alone | Inside, run: informerLateHandler,
	},
	{
		ID: "informer/client-go-against-us", Level: Must, Subject: Both, On: "h1 h2", Lane: "r",
		Says:      "client-go's informers, with and without streaming lists, run unchanged against our server",
		Elsewhere: "lives in interop/clientgo TestInformersAgreeWithAFreshList",
	},
}
