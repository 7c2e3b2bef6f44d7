package concurrency

import (
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases/informers"
)

// OrderCases lists the cases about the order of events. Most of them run under faults.
var OrderCases = []harness.Case{
	{
		ID: "order/same-for-all", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "all watchers see the events in the same order, whenever they started " +
			"(Kubernetes, test/e2e/apimachinery/watch.go)",
		Needs: harness.Writes | harness.SoleWriter, Run: orderSameForAll,
	},
	{
		ID: "order/per-key-and-global", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "versions never decrease in a watch and grow with each event of an object, and " +
			"each event of an object follows from the one before",
		Needs: harness.Writes | harness.SoleWriter, Run: orderPerKeyAndGlobal,
	},
	{
		ID: "order/rst-every-50ms", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule: "connections that are reset repeatedly cause no loss, repetition or " +
			"reordering",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
	},
	{
		ID: "order/stall-2s", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule: "connections that stall for a while cause no loss, repetition or " +
			"reordering",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/half-open", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule:      "half-open connections cause no loss, repetition or reordering",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/byte-drip-1b", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule: "connections that pass a few bytes at a time cause no loss, repetition or " +
			"reordering",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/server-kill9", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule: "a server that is killed and restarted repeatedly causes no loss, " +
			"repetition or reordering",
		CoveredBy: "lives in cmd/listwatch TestKilledServerKeepsAcknowledgedWrites",
	},
	{
		ID: "order/store-leader-kill", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule:      "a store whose leader is killed causes no loss, repetition or reordering",
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
	},
	{
		ID: "order/store-partition", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule: "a watcher of a member that is cut off from its leader never goes back to " +
			"an older state",
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
	},
	{
		ID: "order/store-pause", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule:      "a store whose leader pauses causes no loss, repetition or reordering",
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
	},
	{
		ID: "order/compaction-storm", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule: "watchers that resume during repeated compactions miss nothing, or receive " +
			"Expired",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaults",
	},
	{
		ID: "order/replica-switch", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule: "a watcher that resumes at a lagging replica sees no loss, repetition or " +
			"reordering",
		CoveredBy: "lives in interop/etcd TestWatchersSurviveClusterFaults",
	},
	{
		ID: "order/mixed", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.UnderFaults},
		Rule:      "all faults together, at random, cause no loss, repetition or reordering",
		CoveredBy: "lives in conformance/robustness TestWatchersSurviveFaultsInSimulatedTime",
	},
	{
		ID: "order/converge", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "soon after the last fault every informer equals a list at the newest version",
		Needs: harness.Writes | harness.SoleWriter | harness.Compacts | harness.InProcess, Run: informers.CachesConverge,
	},
}
