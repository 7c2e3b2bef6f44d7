// Package bolt is the store that lasts on one machine: collections with their history in one file, by go.etcd.io/bbolt.
//
// [Open] opens or makes the file; the collections that a program declares are then as it left them, history included, so that watchers
// go on exactly where they were, across a restart and across kill -9.
//
//	db, err := bolt.Open("flags.db", bolt.Options{})
//	flags, err := db.Collection(store.Resource{Kind: "Flag"})
//
// # What is promised
//
// A write that was acknowledged is on disk: it was written by a transaction of bbolt and flushed by fdatasync. Writers who come at the same
// time share transactions, so that a hundred of them wait for the disk little longer than one. A version is never given to two writes.
// Where a write fails, nothing of it is shown to anybody; where the disk failed in the very last step, it may be there after the next
// start. A write whose context ends while it is on its way to the disk may be there or not.
//
// The epoch of a file stays the same for its life. A copy of the file has the same epoch: where one is served after newer writes have been,
// [Options.Restored] makes clients list again, who couldn't tell otherwise that those writes are gone.
//
// # Limits
//
// All current objects and the history are in memory too; the file is read when a collection is declared and written from then on. One
// process at a time has the file.
package bolt
