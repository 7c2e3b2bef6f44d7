package bolt

import (
	"cmp"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// Options configure a database. The zero value is ready to use.
type Options struct {
	// History limits the history of each collection in memory. In the file, the history is a few
	// percent larger.
	History listwatch.Retention
	// StartVersion is the version of a database that Open creates; the first write has the next
	// version. If zero, the wall clock in microseconds is used. If a file is deleted and created
	// again, the clock ensures that the versions that clients still hold are too old, and not in
	// the future.
	StartVersion listwatch.Version
	// LockTimeout is the time that Open waits for another process to close the file. If zero,
	// 5 seconds is used. With a negative value, Open does not wait.
	LockTimeout time.Duration
	// ShrinkThreshold is a number of free bytes. If the file has more free bytes, and these are
	// more than half of the file, Open rewrites the file without them. If zero, 64 MiB is used.
	// With a negative value, Open never rewrites the file.
	ShrinkThreshold int64
	// RestoredFromBackup must be set for the first start with an older copy of the file, which
	// lacks writes that clients may have seen, and with a copy that is used next to the original.
	// Open refuses a copy of [DB.Backup] without it. The database then gets a new epoch and no
	// history, and its version becomes the wall clock in microseconds, so that every client lists
	// again. If the version was already ahead of the wall clock, it grows by 2^32 instead. If there
	// is no file, the error has code Invalid.
	RestoredFromBackup bool
	// Trace receives events for metrics. If nil, they are dropped.
	Trace *Trace
	// Transformer changes objects on their way to the file and back, for example to encrypt them. A
	// file must always be opened with a Transformer that can read what is stored in it; to stop
	// using a key, see [DB.Rewrite]. If nil, objects are stored unchanged. If ToStorage returns an
	// error, the write fails with code Unavailable; if FromStorage does, Open or DB.Collection
	// fails. ToStorage is called by one goroutine at a time, while writers wait, and FromStorage
	// when a collection is declared.
	Transformer store.Transformer
}

// A Trace has hooks for metrics and logs. A hook may be nil. Hooks are called by the goroutine that
// commits or loads, so they must return quickly.
type Trace struct {
	// Loading is called while the records of a collection are read, once for every 1,000, with the
	// number read so far and the total.
	Loading func(collection string, done, total int64)
	// Committed is called after each transaction, with the number of its writes, its duration and
	// its error. A transaction syncs the file once.
	Committed func(writes int, took time.Duration, err error)
	// Expired is called after an object was deleted at the end of its TTL. o is its last state, at
	// the version of the delete. It is called on a goroutine of its own.
	Expired func(collection string, o *listwatch.Object)
}

const (
	defaultLockTimeout     = 5 * time.Second
	defaultShrinkThreshold = 64 << 20
)

func (o Options) withDefaults() Options {
	o.LockTimeout = cmp.Or(o.LockTimeout, defaultLockTimeout)
	o.ShrinkThreshold = cmp.Or(o.ShrinkThreshold, defaultShrinkThreshold)
	o.StartVersion = cmp.Or(o.StartVersion, listwatch.Version(time.Now().UnixMicro()))
	if o.Transformer == nil {
		o.Transformer = identity{}
	}
	return o
}

// identity is the Transformer that changes nothing.
type identity struct{}

func (identity) ToStorage(_ store.Location, plain []byte) ([]byte, error)    { return plain, nil }
func (identity) FromStorage(_ store.Location, stored []byte) ([]byte, error) { return stored, nil }
