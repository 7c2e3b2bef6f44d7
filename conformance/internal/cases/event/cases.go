// Package event has the conformance cases about the content of events, including large
// objects, Unicode text and numbers.
package event

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check the type, version and object of events.
var Cases = []harness.Case{
	{
		ID: "event/create-update-delete", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "create, update and delete are ADDED, MODIFIED and DELETED, each with the " +
			"object and the version of the write",
		Needs: harness.Writes | harness.SoleWriter, Run: createUpdateDelete,
	},
	{
		ID: "event/first-event-is-next", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch from the version of a write starts with the very next write " +
			"(Kubernetes, API concepts)",
		Needs: harness.Writes | harness.SoleWriter, Run: firstEventIsNext,
	},
	{
		ID: "event/deleted-carries-delete-rv", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a DELETED event has the last state of the object, at the version of the " +
			"delete",
		Needs: harness.Writes | harness.SoleWriter, Run: deletedCarriesDeleteRV,
	},
	{
		ID: "event/recreate", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "deleting and recreating an object is DELETED, then ADDED with another uid",
		Needs: harness.Writes | harness.SoleWriter, Run: recreate,
	},
	{
		ID: "event/rv-matches-write", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "an event has the version that the response to the write reported",
		Needs: harness.Writes | harness.SoleWriter, Run: rvMatchesWrite,
	},
	{
		ID: "event/noop-update", Level: harness.Should, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "an update that changes nothing has neither an event nor a new version, or it " +
			"has both",
		Needs: harness.Writes | harness.SoleWriter, Run: noopUpdate,
	},
	{
		ID: "event/txn-atomic", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "objects changed in one transaction share a version; their events are " +
			"contiguous and in key order, without a bookmark in between",
		CoveredBy: "lives in interop/etcd TestKeysOfATransactionStayTogether",
	},
	{
		ID: "event/namespace-scope", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "a watch of a namespace sees only its events, a watch of all namespaces sees " +
			"all",
		Needs: harness.Writes | harness.SoleWriter | harness.KubernetesPaths | harness.Namespaces, Run: namespaceScope,
	},
	{
		ID: "event/object-has-type-meta", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "every object in an event has kind and apiVersion",
		Needs: harness.Writes, Run: objectHasTypeMeta,
	},
	{
		ID: "event/bytes-equal-get", Level: harness.Promise, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "the object in an event equals the response of GET at that version, byte for " +
			"byte, in every text framing",
		Needs: harness.Writes | harness.SoleWriter | harness.KubernetesPaths, Run: bytesEqualGet,
	},
	{
		ID: "event/bytes-equal-across-transports", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "an event has the same object, byte for byte, over all transports",
		Needs: harness.Writes | harness.SoleWriter, Run: bytesEqualAcrossTransports,
	},
	{
		ID: "event/no-mutation-leak", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "a watcher that modifies the bytes it received does not affect other watchers",
		Needs: harness.Writes | harness.SoleWriter, Run: noMutationLeak,
	},
	{
		ID: "event/unknown-type", Level: harness.Should, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime, harness.FakeTime},
		Rule: "an event of an unknown type is an error that names the type, and never crashes " +
			"the program (KEP-956)",
		Needs: harness.InProcess, Run: unknownType,
	},
	{
		ID: "event/latency", Level: harness.Measurement, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule:  "the time from the acknowledgement of a write to its event",
		Needs: harness.Writes | harness.SoleWriter, Run: measureLatency,
	},
}
