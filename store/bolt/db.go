package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

// A DB is a set of collections in one file that share one version counter. It is safe for
// concurrent use.
type DB struct {
	// Not reassigned after construction. revision and queue guard their contents themselves.
	path     string // as passed to Open, for messages
	realPath string // absolute, with symbolic links resolved
	options  Options
	epoch    string
	revision history.Revision
	queue    queue
	done     chan struct{} // closed when the committer has returned

	mu sync.Mutex // acquired before the mutex of a log, never after it
	// Guarded by mu.
	file      *file // nil after Close
	uncertain bool  // the last transaction failed, but may be in the file
	// damage is nil if the file is intact. Otherwise every write fails with this error.
	damage error
	update func(func(*bbolt.Tx) error) error
	// began is the start of the commit in progress, in Unix nanoseconds, or zero. It may be read
	// without mu.
	began atomic.Int64
	// checked is the result of the last checkFile, or nil. It may be read without mu.
	checked     atomic.Pointer[error]
	last        listwatch.Version   // the newest version assigned to a write
	published   listwatch.Version   // the newest version on disk; revision is advanced to it
	collections map[string]*backend // by qualified name
}

// Version returns the version of the newest write. Before the first write it returns the
// start version.
func (db *DB) Version() listwatch.Version { return db.revision.Version() }

// Epoch returns the random text that distinguishes this file from others. It was chosen when
// the file was created or restored from a backup.
func (db *DB) Epoch() string { return db.epoch }

// Ready returns an error if no write can succeed without an operator's help: the database is
// closed, or its file is damaged, or was deleted, replaced or overwritten while it was open. A file
// that was moved away can be moved back to its path, and writes then succeed again. A file that was
// overwritten must be reopened. Ready detects an overwrite because other programs that write to the
// file change its size or its headers. The error does not contain the path, so a server can send it
// to clients.
//
// Ready does not wait for a transaction in progress. If that has taken longer than [StuckAfter],
// for example because the disk does not respond, Ready returns an error. Otherwise it returns the
// result of the last check, which every transaction makes.
func (db *DB) Ready(context.Context) error {
	if !db.mu.TryLock() {
		began := db.began.Load()
		if took := time.Duration(time.Now().UnixNano() - began); began != 0 && took > StuckAfter {
			return &listwatch.Error{
				Code:    listwatch.Unavailable,
				Message: fmt.Sprintf("a transaction of the data file has taken %v so far", took.Round(time.Second)),
			}
		}
		if err := db.checked.Load(); err != nil {
			return *err
		}
		return nil
	}
	defer db.mu.Unlock()
	if db.file == nil {
		return errClosed()
	}
	return db.checkFile()
}

// StuckAfter is the duration after which [DB.Ready] reports a transaction in progress.
const StuckAfter = 5 * time.Second

// Path returns the path that was passed to Open.
func (db *DB) Path() string { return db.path }

// RealPath returns the absolute path of the file, without symbolic links.
func (db *DB) RealPath() string { return db.realPath }

// Compact drops all history: a watch that starts at any version but the newest is Expired. Open
// watches that have read every event continue. The committer then removes the history from the
// file, a limited number of records in each transaction. The file does not get smaller; see
// [DB.Shrink].
func (db *DB) Compact() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, b := range db.collections {
		b.Compact()
	}
	db.queue.wake()
}

// Close completes the queued writes and closes the file. Later writes fail with code
// Unavailable. Objects can still be listed, and watches stay open. A second call has no
// effect.
func (db *DB) Close() error {
	db.queue.close()
	<-db.done
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.file == nil {
		return nil
	}
	closeFile := db.file.Close
	if db.damage != nil {
		closeFile = db.file.abandon
	}
	db.file = nil
	return closeFile()
}

// checkFile returns an error if writes to the file would be lost, or would damage what another
// program has written to it. The caller must hold db.mu, except during Open.
func (db *DB) checkFile() (err error) {
	defer func() { db.checked.Store(&err) }()
	switch {
	case db.damage != nil:
		return db.damage
	case db.isDisplaced():
		return errDisplaced()
	case db.file.isOverwritten():
		db.damage = errOverwritten()
	}
	return db.damage
}

// isDisplaced reports whether there is another file, or no file, at the path of the database. All
// writes to the open file are then lost when it is closed. The caller must hold db.mu, except
// during Open.
func (db *DB) isDisplaced() bool {
	opened, err := db.file.handle.Stat()
	if err != nil {
		return false // the next transaction reports it
	}
	named, err := os.Stat(db.realPath)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(opened, named)
}

// A backend keeps one collection. It serves lists and watches from its log.
type backend struct {
	*history.Log
	// Immutable after construction.
	db   *DB
	name string

	// Guarded by db.mu.
	floor   listwatch.Version // the floor in the file, at most the floor of the log
	horizon listwatch.Version // the horizon in the file, at most the horizon of the log
}

var _ store.Backend = (*backend)(nil)

// History returns the log for [store.Union].
func (b *backend) History() *history.Log { return b.Log }

// Get implements [store.Backend].
func (b *backend) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.Log.Get(key), nil
}

// Commit implements [store.Backend]. It returns when the write is on disk. If ctx ends while
// the write is queued, nothing is written. If ctx ends later, the write may or may not
// happen.
func (b *backend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &request{backend: b, change: c, done: make(chan struct{})}
	if !b.db.queue.add(r) {
		return nil, errClosed()
	}
	select {
	case <-r.done:
		return r.object, r.err
	case <-ctx.Done():
		r.state.CompareAndSwap(queued, canceled)
		return nil, ctx.Err()
	}
}
