// Package event has the conformance cases about the content of events, including large
// objects, Unicode text and numbers.
package event

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check the type, version and object of events.
var Cases = []harness.Case{
	{
		ID: "event/create-update-delete", Subject: harness.Both, Needs: harness.OwnCollection, Run: createUpdateDelete,
		Rule: "create, update and delete are ADDED, MODIFIED and DELETED, each with the object and the version of " +
			"the write",
	},
	{
		ID: "event/first-event-is-next", Subject: harness.Both, Needs: harness.OwnCollection, Run: firstEventIsNext,
		Rule: "a watch from the version of a write starts with the very next write (Kubernetes, API concepts)",
	},
	{
		ID: "event/deleted-carries-delete-rv", Subject: harness.Both, Needs: harness.OwnCollection,
		Run:  deletedCarriesDeleteRV,
		Rule: "a DELETED event has the last state of the object, at the version of the delete",
	},
	{
		ID: "event/recreate", Subject: harness.Both, Needs: harness.OwnCollection, Run: recreate,
		Rule: "deleting and recreating an object is DELETED, then ADDED with another uid",
	},
	{
		ID: "event/rv-matches-write", Subject: harness.Both, Needs: harness.OwnCollection, Run: rvMatchesWrite,
		Rule: "an event has the version that the response to the write reported",
	},
	{
		ID: "event/noop-update", Level: harness.Should, Needs: harness.OwnCollection, Run: noopUpdate,
		Rule: "an update that changes nothing has neither an event nor a new version, or it has both",
	},
	{
		ID: "event/txn-atomic", CoveredBy: "lives in interop/etcd TestKeysOfATransactionStayTogether",
		Rule: "objects changed in one transaction share a version; their events are contiguous and in key order, " +
			"without a bookmark in between",
	},
	{
		ID: "event/namespace-scope", Needs: harness.OwnCollection | harness.KubernetesPaths | harness.Namespaces,
		Run:  namespaceScope,
		Rule: "a watch of a namespace sees only its events, a watch of all namespaces sees all",
	},
	{
		ID: "event/object-has-type-meta", Needs: harness.Writes, Run: objectHasTypeMeta,
		Rule: "every object in an event has kind and apiVersion",
	},
	{
		ID: "event/bytes-equal-get", Level: harness.Promise, Subject: harness.Both,
		Needs: harness.OwnCollection | harness.KubernetesPaths, Run: bytesEqualGet,
		Rule: "the object in an event equals the response of GET at that version, byte for byte, in every text framing",
	},
	{
		ID: "event/bytes-equal-across-transports", Level: harness.Promise, Needs: harness.OwnCollection,
		Run:  bytesEqualAcrossTransports,
		Rule: "an event has the same object, byte for byte, over all transports",
	},
	{
		ID: "event/no-mutation-leak", Level: harness.Promise, Needs: harness.OwnCollection, Run: noMutationLeak,
		Rule: "a watcher that modifies the bytes it received does not affect other watchers",
	},
	{
		ID: "event/unknown-type", Level: harness.Should, Subject: harness.Client, Mode: harness.BothTimes,
		Needs: harness.InProcess, Run: unknownType,
		Rule: "an event of an unknown type is an error that names the type, and never crashes the program (KEP-956)",
	},
	{
		ID: "event/latency", Level: harness.Measurement, Subject: harness.Both, Needs: harness.OwnCollection,
		Run:  measureLatency,
		Rule: "the time from the acknowledgement of a write to its event",
	},
}
