// Package bolt keeps collections and their history in one file, using go.etcd.io/bbolt. It is
// the durable store for one machine.
//
// [Open] opens or creates the file. The collections that a program declares have the content
// that was last written, including the history, so watchers resume after a restart or kill -9
// without a gap.
//
//	db, err := bolt.Open("flags.db", bolt.Options{})
//	flags, err := db.Collection(store.CollectionSpec{Kind: "Flag"})
//
// # Guarantees
//
// An acknowledged write is on disk: a bbolt transaction has written it and called fdatasync.
// Concurrent writers share transactions, so a hundred of them wait for the disk only a little
// longer than one. A version is never used for two writes.
//
// While the database is open, no reader sees a write that failed. But if the disk fails in the last
// step of a transaction, the write may exist after the next start. If the context of a write ends
// while the write is on its way to disk, the write may or may not exist.
//
// A file keeps its epoch, and a copy of the file has the same epoch. If an older copy replaces the
// file, set [Options.RestoredFromBackup], which gives the copy a new epoch so that clients list
// again. Otherwise they cannot detect that the writes since the copy are lost. Open refuses a copy
// that [DB.Backup] has made if the option is missing; it does not recognize other copies.
//
// # Objects that expire
//
// The deadlines of objects with a TTL are in memory, so a renewal does not write to the file. Close
// saves the time that is left. If the process ends in another way, every object has its whole TTL
// again, so no object is deleted too early.
//
// # Limits
//
// All current objects and the history are also kept in memory. The file is read when a
// collection is declared, and only written after that. Only one process at a time can open
// the file.
package bolt
