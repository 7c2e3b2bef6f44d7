// Package informer keeps a typed copy of a collection in memory: it lists a [listwatch.Source], follows it, and tells what changed.
//
// The type to start with is [Informer]. It is made of three parts that are of use alone: a [Reflector] follows the source and decodes
// each object once; a [DeltaFIFO] holds what was not handled yet, compressed per key; an [Indexer] is the local store, with indexes.
//
//	flags := &informer.Informer[Flag]{Source: source}
//	flags.Handle(informer.Handler[Flag]{
//		OnAdd:    func(f Flag, initial bool) { fmt.Println("there is", f.Name) },
//		OnUpdate: func(before, now Flag) { fmt.Println("changed:", now.Name) },
//		OnDelete: func(d informer.Deleted[Flag]) { fmt.Println("gone:", d.Key) },
//	}, nil)
//	go flags.Run(ctx)
//	err := flags.WaitForSync(ctx)              // everything that was there is here now, and was handled
//	all, err := flags.List(listwatch.Query{})  // from memory
//
// # Promises
//
// The store ends equal to the source, whatever is lost, repeated or listed again on the way: no update and no deletion is skipped, an
// object never goes back to an older version, and a version is never claimed before everything up to it is in the store. A handler sees
// for each object first an add, then updates, then a deletion; states in between may be skipped where it is slow, and what waits for it is
// bounded by the number of objects. Values are shared: who changes one must copy it first.
//
// A package at this level knows nothing but [listwatch.Source]: a store in process, our server, a relay and a Kubernetes API server are
// the same to it.
package informer
