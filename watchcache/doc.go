// Package watchcache turns data that lives elsewhere into a [listwatch.Source]. It is for the
// tables, queues and files of your own program: whatever can report its state and its changes in
// order. The owner of a [Cache] feeds it, and needs no code for watchers:
//
//	cache := watchcache.New(listwatch.Description{Kind: "Flag"}, watchcache.Options{})
//	http.Handle("/flags", &watchserver.Server{Source: cache})
//
//	err := cache.Replace(objects, version) // the state at a version
//	for change := range feed {
//		err = cache.Apply(change) // every change after it, in order
//	}
//
// Selectors, namespaces, pages, initial events, bookmarks, exact versions and resumption are
// served from the memory of the cache. docs/own-source.md explains how to obtain versions from a
// database, and examples/postgres does it for a table in PostgreSQL.
//
// Start with [Cache]. Package typed converts Go values to its objects, and reads them back.
//
// # Duties of the owner
//
// The guarantees of [listwatch.Source] hold if the owner keeps these rules:
//
//   - Every change has a version greater than zero, and a later change of any object has a greater
//     version. An empty collection starts at version 1.
//   - Every change after the version of Replace is applied, in order. If the owner may have
//     missed a change, it calls Replace again, which ends all watches with [listwatch.Expired].
//   - A version is never used again. If it may be, for example after a backup was restored, the
//     owner opens a new Cache with another [listwatch.Description.Epoch].
//   - If writes are acknowledged before the cache has them, [Options.Newest] returns the version
//     to wait for.
package watchcache
