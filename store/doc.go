// Package store applies the rules of Kubernetes to collections that can be written: names,
// metadata, optimistic concurrency, finalizers and retried updates. The rules are implemented
// once, in [Collection], over a [Backend] of four methods. The packages memory, bolt and etcd
// are backends.
//
// A program declares each collection by a [CollectionSpec] and writes JSON to it. Package typed
// reads and writes values of a Go type. A Collection of either package is a [listwatch.Source],
// so it can be served.
//
// # Writing a backend
//
// A backend keeps the objects of one collection under versions that grow with every write, and
// implements Source, Get and Commit. It receives each new object as a [Draft], which it completes
// with the version of the write. The exported names of the root package suffice to implement its
// watches, as the backend over a map in examples/extending shows.
//
// # Source files
//
//   - spec.go, names.go, rules.go, metadatatypes.go: the rules, without a backend.
//   - document.go, submission.go: an object as a client sent it.
//   - prepare.go, finalizers.go, quota.go: the metadata that the server sets, deletes, limits.
//   - backend.go, collection.go, write.go: the backend, and the verbs with their retries.
//   - transformer.go: the interface with which databases encrypt objects.
package store
