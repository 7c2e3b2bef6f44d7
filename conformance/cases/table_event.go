package cases

// eventCases are those of what events mean.
var eventCases = []Case{
	{
		ID: "event/create-update-delete", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "creating, changing and deleting an object is ADDED, MODIFIED and DELETED, each with the object and the version of the write",
		needs: Writes | SoleWriter, run: createUpdateDelete,
	},
	{
		ID: "event/first-event-is-next", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "a watch from the version of a write begins with the very next write (Kubernetes, API concepts)",
		needs: Writes | SoleWriter, run: firstEventIsNext,
	},
	{
		ID: "event/deleted-carries-delete-rv", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "a DELETED event has the last state of the object at the version of the delete",
		needs: Writes | SoleWriter, run: deletedCarriesDeleteRV,
	},
	{
		ID: "event/recreate", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "deleting an object and creating one of the same name is DELETED, then ADDED with another uid",
		needs: Writes | SoleWriter, run: recreate,
	},
	{
		ID: "event/rv-matches-write", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "the version of an event is the one that the answer to the write had",
		needs: Writes | SoleWriter, run: rvMatchesWrite,
	},
	{
		ID: "event/noop-update", Level: Should, Subject: Server, Transports: all, Mode: "r",
		Rule:  "an update that changes nothing has no event and no new version, or has both",
		needs: Writes | SoleWriter, run: noopUpdate,
	},
	{
		ID: "event/txn-atomic", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:      "several objects that one transaction changed have one version, are contiguous and in key order, with no bookmark between them",
		CoveredBy: "lives in interop/etcd TestKeysOfOneTransactionComeTogetherInOrder",
	},
	{
		ID: "event/namespace-scope", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a watch of a namespace sees that alone, one of all namespaces sees all",
		needs: Writes | SoleWriter | KubernetesPaths | Namespaces, run: namespaceScope,
	},
	{
		ID: "event/object-has-type-meta", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "every object in an event has kind and apiVersion",
		needs: Writes, run: objectHasTypeMeta,
	},
	{
		ID: "event/bytes-equal-get", Level: Promise, Subject: Both, Transports: all, Mode: "r",
		Rule:  "the object in an event is byte for byte what GET returns at that version, in every text framing",
		needs: Writes | SoleWriter | KubernetesPaths, run: bytesEqualGet,
	},
	{
		ID: "event/bytes-equal-across-transports", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule:  "an event has the same object, byte for byte, over all transports",
		needs: Writes | SoleWriter, run: bytesEqualAcrossTransports,
	},
	{
		ID: "event/no-mutation-leak", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule:  "what one watcher does to the bytes it was given, no other sees",
		needs: Writes | SoleWriter, run: noMutationLeak,
	},
	{
		ID: "event/unknown-type", Level: Should, Subject: Client, Transports: all, Mode: "rf",
		Rule:  "an event of a type that a client does not know is an error that names it, and never ends the program (KEP-956)",
		needs: InProcess, run: unknownType,
	},
	{
		ID: "event/latency", Level: Measurement, Subject: Both, Transports: all, Mode: "r",
		Rule:  "the time from a write's acknowledgement to its event",
		needs: Writes | SoleWriter, run: eventLatency,
	},
}
