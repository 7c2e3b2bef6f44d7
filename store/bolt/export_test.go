package bolt

import "go.etcd.io/bbolt"

// AroundTransactions has every transaction of db made by f, which is given the one to make.
func AroundTransactions(db *DB, f func(transact func() error) error) {
	db.file.Lock()
	defer db.file.Unlock()
	db.transact = func(do func(*bbolt.Tx) error) error {
		return f(func() error { return db.bolt.Update(do) })
	}
}

// Records returns how many records the file has of a collection. It doesn't wait for a transaction, but db must not be shrunk or closed
// meanwhile.
func Records(db *DB, collection string) (n int) {
	_ = db.bolt.View(func(tx *bbolt.Tx) error {
		n = tx.Bucket(bucketOf(collection)).Stats().KeyN
		return nil
	})
	return n
}

// Edit changes the file of db behind its back.
func Edit(db *DB, f func(tx *bbolt.Tx) error) error {
	db.file.Lock()
	defer db.file.Unlock()
	return db.bolt.Update(f)
}

// Names of what Edit may want to change.
var (
	HeaderBucket = headerBucket
	FormatKey    = formatKey
	BucketOf     = bucketOf
	FloorKey     = floorKey
)

// Waiting returns how many writes wait for the committer.
func Waiting(db *DB) int {
	db.queue.mu.Lock()
	defer db.queue.mu.Unlock()
	return len(db.queue.requests)
}

// NoSync leaves it to the operating system when transactions of db reach the disk, which is quick and fit for nothing but tests.
func NoSync(db *DB) {
	db.file.Lock()
	defer db.file.Unlock()
	db.bolt.NoSync = true
}

// KeepLocks leaves bbolt as it is after a panic within its cleaning up: it keeps its locks for ever. It belongs into a transaction.
func KeepLocks(db *DB) { _, _ = db.bolt.Begin(true) }
