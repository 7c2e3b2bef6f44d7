package concurrency

import (
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases/informers"
)

// OrderCases lists the cases about the order of events. Most of them run under faults.
var OrderCases = []harness.Case{
	{
		ID: "order/same-for-all", Subject: harness.Both, Needs: harness.OwnCollection, Run: orderSameForAll,
		Rule: "all watchers see the events in the same order, whenever they started (Kubernetes, " +
			"test/e2e/apimachinery/watch.go)",
	},
	{
		ID: "order/per-key-and-global", Subject: harness.Both, Needs: harness.OwnCollection, Run: orderPerKeyAndGlobal,
		Rule: "versions never decrease in a watch and grow with each event of an object, and each event of an object " +
			"follows from the one before",
	},
	{
		ID: "order/rst-every-50ms", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
		Rule:      "connections that are reset repeatedly cause no loss, repetition or reordering",
	},
	{
		ID: "order/stall-2s", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
		Rule:      "connections that stall for a while cause no loss, repetition or reordering",
	},
	{
		ID: "order/half-open", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
		Rule:      "half-open connections cause no loss, repetition or reordering",
	},
	{
		ID: "order/byte-drip-1b", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
		Rule:      "connections that pass a few bytes at a time cause no loss, repetition or reordering",
	},
	{
		ID: "order/server-kill9", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in cmd/listwatch TestKilledServerKeepsAcknowledgedWrites",
		Rule:      "a server that is killed and restarted repeatedly causes no loss, repetition or reordering",
	},
	{
		ID: "order/store-leader-kill", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
		Rule:      "a store whose leader is killed causes no loss, repetition or reordering",
	},
	{
		ID: "order/store-partition", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
		Rule:      "a watcher of a member that is cut off from its leader never goes back to an older state",
	},
	{
		ID: "order/store-pause", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
		Rule:      "a store whose leader pauses causes no loss, repetition or reordering",
	},
	{
		ID: "order/compaction-storm", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
		Rule:      "watchers that resume during repeated compactions miss nothing, or receive Expired",
	},
	{
		ID: "order/replica-switch", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
		Rule:      "a watcher that resumes at a lagging replica sees no loss, repetition or reordering",
	},
	{
		ID: "order/mixed", Subject: harness.Both, Mode: harness.UnderFaults,
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
		Rule:      "all faults together, at random, cause no loss, repetition or reordering",
	},
	{
		ID: "order/converge", Subject: harness.Both, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.Compacts | harness.InProcess, Run: informers.CachesConverge,
		Rule: "soon after the last fault every informer equals a list at the newest version",
	},
}
