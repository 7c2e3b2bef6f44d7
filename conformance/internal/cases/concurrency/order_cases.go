package concurrency

import (
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases/informers"
)

// OrderCases lists the cases about the order of events. Most of them run under faults.
var OrderCases = []harness.Case{
	harness.Rule("order/same-for-all",
		"all watchers see the events in the same order, whenever they started (Kubernetes, "+
			"test/e2e/apimachinery/watch.go)",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: orderSameForAll}),
	harness.Rule("order/per-key-and-global",
		"versions never decrease in a watch and grow with each event of an object, and each event of an object "+
			"follows from the one before",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: orderPerKeyAndGlobal}),
	harness.Rule("order/rst-every-50ms",
		"connections that are reset repeatedly cause no loss, repetition or reordering", harness.Case{
			Subject: harness.Both, Mode: harness.UnderFaults,
			CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
		}),
	harness.Rule("order/stall-2s", "connections that stall for a while cause no loss, repetition or reordering",
		harness.Case{
			Subject: harness.Both, Mode: harness.UnderFaults,
			CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
		}),
	harness.Rule("order/half-open", "half-open connections cause no loss, repetition or reordering", harness.Case{
		Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	}),
	harness.Rule("order/byte-drip-1b",
		"connections that pass a few bytes at a time cause no loss, repetition or reordering", harness.Case{
			Subject: harness.Both, Mode: harness.UnderFaults,
			CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
		}),
	harness.Rule("order/server-kill9",
		"a server that is killed and restarted repeatedly causes no loss, repetition or reordering", harness.Case{
			Subject: harness.Both, Mode: harness.UnderFaults,
			CoveredBy: "lives in cmd/listwatch TestKilledServerKeepsAcknowledgedWrites",
		}),
	harness.Rule("order/store-leader-kill", "a store whose leader is killed causes no loss, repetition or reordering",
		harness.Case{
			Subject: harness.Both, Mode: harness.UnderFaults,
			CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
		}),
	harness.Rule("order/store-partition",
		"a watcher of a member that is cut off from its leader never goes back to an older state", harness.Case{
			Subject: harness.Both, Mode: harness.UnderFaults,
			CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
		}),
	harness.Rule("order/store-pause", "a store whose leader pauses causes no loss, repetition or reordering",
		harness.Case{
			Subject: harness.Both, Mode: harness.UnderFaults,
			CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
		}),
	harness.Rule("order/compaction-storm",
		"watchers that resume during repeated compactions miss nothing, or receive Expired", harness.Case{
			Subject: harness.Both, Mode: harness.UnderFaults,
			CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
		}),
	harness.Rule("order/replica-switch",
		"a watcher that resumes at a lagging replica sees no loss, repetition or reordering", harness.Case{
			Subject: harness.Both, Mode: harness.UnderFaults,
			CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
		}),
	harness.Rule("order/mixed", "all faults together, at random, cause no loss, repetition or reordering", harness.Case{
		Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	}),
	harness.Rule("order/converge", "soon after the last fault every informer equals a list at the newest version",
		harness.Case{
			Subject: harness.Both, Mode: harness.EitherTime,
			Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informers.CachesConverge,
		}),
}
