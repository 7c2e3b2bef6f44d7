package concurrency

import (
	"github.com/listwatch/listwatch/conformance/cases/informers"
	"github.com/listwatch/listwatch/conformance/harness"
)

// OrderCases are those of the order of events, most of them under faults.
var OrderCases = []harness.Case{
	{
		ID: "order/same-for-all", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "all watchers see one order of events, whenever they began (Kubernetes, test/e2e/apimachinery/watch.go)",
		Needs: harness.Writes | harness.SoleWriter, Run: orderSameForAll,
	},
	{
		ID: "order/per-key-and-global", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "versions never decrease in a watch, and grow with each event of an object, whose events follow from one another",
		Needs: harness.Writes | harness.SoleWriter, Run: orderPerKeyAndGlobal,
	},
	{
		ID: "order/rst-every-50ms", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "connections that are reset again and again lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
	},
	{
		ID: "order/stall-2s", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "connections that stand still for a while lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/half-open", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "connections whose other end has vanished lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/byte-drip-1b", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "connections that let few bytes pass at a time lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/server-kill9", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "a server that is killed and started again, over and over, loses, repeats and reorders nothing",
		CoveredBy: "lives in cmd/listwatch TestKilledServerLosesNothingAndWatchersSeeEverythingOnce",
	},
	{
		ID: "order/store-leader-kill", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "a store whose leader is killed loses, repeats and reorders nothing",
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
	},
	{
		ID: "order/store-partition", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "a watcher of a member that is cut off from its leader sees no past state again",
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
	},
	{
		ID: "order/store-pause", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "a store whose leader stands still for a while loses, repeats and reorders nothing",
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
	},
	{
		ID: "order/compaction-storm", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "watchers that resume while history is forgotten again and again miss nothing, or are told to begin anew",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
	},
	{
		ID: "order/replica-switch", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "a watcher that goes on at a replica that lags loses, repeats and reorders nothing",
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
	},
	{
		ID: "order/mixed", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "x",
		Rule:      "all faults together, at random, lose, repeat and reorder nothing",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/converge", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "f",
		Rule:  "when the faults are over every informer soon equals a list at the newest version",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informers.Converge,
	},
}
