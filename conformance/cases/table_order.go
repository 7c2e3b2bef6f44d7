package cases

// orderCases are those of the order of events, most of them under faults.
var orderCases = []Case{
	{
		ID: "order/same-for-all", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "all watchers see one order of events, whenever they began (Kubernetes, test/e2e/apimachinery/watch.go)",
		needs: Writes | SoleWriter, run: orderSameForAll,
	},
	{
		ID: "order/per-key-and-global", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "versions never decrease in a watch, and grow with each event of an object, whose events follow from one another",
		needs: Writes | SoleWriter, run: orderPerKeyAndGlobal,
	},
	{
		ID: "order/rst-every-50ms", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "connections that are reset again and again lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
	},
	{
		ID: "order/stall-2s", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "connections that stand still for a while lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/half-open", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "connections whose other end has vanished lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/byte-drip-1b", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "connections that let few bytes pass at a time lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/server-kill9", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "a server that is killed and started again, over and over, loses, repeats and reorders nothing",
		CoveredBy: "lives in cmd/listwatch TestKilledServerLosesNothingAndWatchersSeeEverythingOnce",
	},
	{
		ID: "order/store-leader-kill", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "a store whose leader is killed loses, repeats and reorders nothing",
		CoveredBy: "lives in interop/etcdcluster TestWatchersBearTheFaultsOfACluster",
	},
	{
		ID: "order/store-partition", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "a watcher of a member that is cut off from its leader sees no past state again",
		CoveredBy: "lives in interop/etcdcluster TestWatchersBearTheFaultsOfACluster",
	},
	{
		ID: "order/store-pause", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "a store whose leader stands still for a while loses, repeats and reorders nothing",
		CoveredBy: "lives in interop/etcdcluster TestWatchersBearTheFaultsOfACluster",
	},
	{
		ID: "order/compaction-storm", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "watchers that resume while history is forgotten again and again miss nothing, or are told to begin anew",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
	},
	{
		ID: "order/replica-switch", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "a watcher that goes on at a replica that lags loses, repeats and reorders nothing",
		CoveredBy: "lives in interop/etcdcluster TestWatchersBearTheFaultsOfACluster",
	},
	{
		ID: "order/mixed", Level: Must, Subject: Both, Transports: all, Mode: "x",
		Rule:      "all faults together, at random, lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/converge", Level: Must, Subject: Both, Transports: all, Mode: "f",
		Rule:  "when the faults are over every informer soon equals a list at the newest version",
		needs: Writes | SoleWriter | Compacts | InProcess, run: informersConverge,
	},
}
