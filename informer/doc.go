// Package informer keeps a typed copy of a collection in memory. It lists a
// [listwatch.Source], watches it from then on, and calls handlers with the changes.
//
// Start with [Informer]. It consists of three parts that can also be used separately: a
// [Reflector] follows the source and decodes each object once, a [DeltaFIFO] holds the
// changes that were not handled yet, coalesced per key, and an [Indexer] is the local store
// with its indexes.
//
//	flags := &informer.Informer[Flag]{Source: source}
//	flags.Handle(informer.Handler[Flag]{
//		OnAdd:    func(f Flag, initial bool) { fmt.Println("added:", f.Name) },
//		OnUpdate: func(before, now Flag) { fmt.Println("updated:", now.Name) },
//		OnDelete: func(d informer.Deleted[Flag]) { fmt.Println("deleted:", d.Key) },
//	}, nil)
//	go flags.Run(ctx)
//	err := flags.WaitForSync(ctx)              // the initial state is stored and handled
//	all, err := flags.List(listwatch.Query{})  // reads from memory
//
// # Guarantees
//
// The local store converges to the state of the source, even if a connection loses or repeats
// events. No update or deletion is lost, although several changes of one object may be merged into
// one. An object never returns to an older version, and the store reports a version only when it
// holds everything up to that version. For each object a handler receives an add, then updates,
// then a deletion. A slow handler may miss intermediate states. The memory for its pending calls is
// bounded by the number of objects. Values are shared: copy a value before you modify it.
//
// The package depends on nothing but [listwatch.Source]: a store in the same process, a relay, and
// a client.Remote of this module's server or of a Kubernetes API server all look the same to an
// informer.
package informer
