// Package event has the conformance cases about the content of events, including large
// objects, Unicode text and numbers.
package event

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// Cases check the type, version and object of events.
var Cases = []harness.Case{
	harness.Rule("event/create-update-delete",
		"create, update and delete are ADDED, MODIFIED and DELETED, each with the object and the version of the write",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: createUpdateDelete}),
	harness.Rule("event/first-event-is-next",
		"a watch from the version of a write starts with the very next write (Kubernetes, API concepts)",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: firstEventIsNext}),
	harness.Rule("event/deleted-carries-delete-rv",
		"a DELETED event has the last state of the object, at the version of the delete",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: deletedCarriesDeleteRV}),
	harness.Rule("event/recreate", "deleting and recreating an object is DELETED, then ADDED with another uid",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: recreate}),
	harness.Rule("event/rv-matches-write", "an event has the version that the response to the write reported",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: rvMatchesWrite}),
	harness.Rule("event/noop-update",
		"an update that changes nothing has neither an event nor a new version, or it has both",
		harness.Case{Strength: harness.Should, Needs: harness.OwnCollection, Run: noopUpdate}),
	harness.Rule("event/txn-atomic",
		"objects changed in one transaction share a version; their events are contiguous and in key order, without a "+
			"bookmark in between",
		harness.Case{CoveredBy: "lives in interop/etcd TestKeysOfATransactionStayTogether"}),
	harness.Rule("event/namespace-scope",
		"a watch of a namespace sees only its events, a watch of all namespaces sees all",
		harness.Case{Needs: harness.OwnCollection | harness.KubernetesPaths | harness.Namespaces, Run: namespaceScope}),
	harness.Rule("event/object-has-type-meta", "every object in an event has kind and apiVersion",
		harness.Case{Needs: harness.Writes, Run: objectHasTypeMeta}),
	harness.Rule("event/bytes-equal-get",
		"the object in an event equals the response of GET at that version, byte for byte, in every text framing",
		harness.Case{
			Strength: harness.Promise, Subject: harness.Both, Needs: harness.OwnCollection | harness.KubernetesPaths,
			Run: bytesEqualGet,
		}),
	harness.Rule("event/bytes-equal-across-transports",
		"an event has the same object, byte for byte, over all transports",
		harness.Case{Strength: harness.Promise, Needs: harness.OwnCollection, Run: bytesEqualAcrossTransports}),
	harness.Rule("event/no-mutation-leak",
		"a watcher that modifies the bytes it received does not affect other watchers",
		harness.Case{Strength: harness.Promise, Needs: harness.OwnCollection, Run: noMutationLeak}),
	harness.Rule("event/unknown-type",
		"an event of an unknown type is an error that names the type, and never crashes the program (KEP-956)",
		harness.Case{
			Strength: harness.Should, Subject: harness.Client, Mode: harness.BothTimes, Needs: harness.InProcess,
			Run: unknownType,
		}),
	harness.Rule("event/latency", "the time from the acknowledgement of a write to its event", harness.Case{
		Strength: harness.Measurement, Subject: harness.Both, Needs: harness.OwnCollection, Run: measureLatency,
	}),
}
