package bolt

import (
	"time"

	"go.etcd.io/bbolt"
)

// WrapTransactions makes db call f for every transaction. f receives the function that
// performs the transaction.
func WrapTransactions(db *DB, f func(transact func() error) error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.update = func(do func(*bbolt.Tx) error) error {
		return f(func() error { return db.file.Update(do) })
	}
}

// CountRecords returns the number of records of a collection in the file. It does not wait
// for transactions. db must not be shrunk or closed meanwhile.
func CountRecords(db *DB, collection string) (n int) {
	_ = db.file.View(func(tx *bbolt.Tx) error {
		n = tx.Bucket(bucketOf(collection)).Stats().KeyN
		return nil
	})
	return n
}

// EditFile changes the file directly, without the checks of db.
func EditFile(db *DB, f func(tx *bbolt.Tx) error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.file.Update(f)
}

// These names are for callers of EditFile.
var (
	HeaderBucket = headerBucket
	FormatKey    = formatKey
	BucketOf     = bucketOf
	LifetimesKey = lifetimesKey
)

// QueuedWrites returns the number of writes that wait for the committer.
func QueuedWrites(db *DB) int {
	db.queue.mu.Lock()
	defer db.queue.mu.Unlock()
	return len(db.queue.requests)
}

// DisableSync makes transactions of db faster by not waiting for the disk.
func DisableSync(db *DB) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.file.NoSync = true
}

// LeakLocks makes bbolt hold its locks forever, as after a panic during its cleanup. It
// must be called within a transaction.
func LeakLocks(db *DB) { _, _ = db.file.Begin(true) }

// Lock holds the lock that the committer holds during a transaction.
func Lock(db *DB) (unlock func()) {
	db.mu.Lock()
	return db.mu.Unlock
}

// SetClock sets the clock of the TTLs in the collections that are added to db later.
func SetClock(db *DB, now func() time.Time) { db.now = now }
