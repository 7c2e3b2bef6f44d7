// Package memory keeps collections in memory, with their history for watchers. It is the
// store for tests, demonstrations and state that may be lost.
//
// [New] is the shortest way to a collection: it returns one collection of one Go type. [Open]
// returns a database that can hold any number of collections.
//
//	flags := memory.New[Flag]()
//	flag, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}})
//
// # Versions
//
// All collections of a database share one version counter, so versions order their writes.
// The counter starts at the wall clock in microseconds. A restarted program does not reuse
// versions, as long as the clock does not go back and there are fewer than a million writes
// per second. Each database also has a random epoch, by which clients notice that the state
// was replaced.
//
// An object with a TTL is deleted by a timer. Its deadline keeps the database in memory until then.
//
// Nothing survives the process. [Options] limits the history; a watch from a version before the
// retained history is Expired.
package memory
