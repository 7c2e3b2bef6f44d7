package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/expiry"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/store"
)

// A DB is a set of collections in one file that share one version counter. It is safe for
// concurrent use.
type DB struct {
	// Not reassigned after construction. revision and queue guard their contents themselves.
	path     string // as passed to Open, for messages
	realPath string // absolute, with symbolic links resolved
	options  Options
	now      func() time.Time // the clock of TTLs; not nil only in tests
	epoch    string
	revision revision.Revision
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

// Open opens the database in the file at path. If there is no file, Open creates it; the
// directory must exist. The caller must close the database.
//
// If Open fails, the file is unchanged, or has only got the new epoch that
// [Options].RestoredFromBackup requests. The code of the error is
//   - Unavailable if another process has the file open for longer than o.LockTimeout, or the
//     disk is full,
//   - Forbidden if the file or its directory cannot be written,
//   - Invalid if this package did not write the file, or wrote it with another Transformer, or if
//     the file is a backup and [Options].RestoredFromBackup is false ([ErrBackup]),
//   - Unsupported if a newer version of this package has written the file,
//   - Corrupt if the file is truncated or damaged.
func Open(path string, o Options) (*DB, error) {
	o = o.withDefaults()
	realPath, err := resolve(path)
	if err != nil {
		return nil, openError(path, err)
	}
	f, err := openFile(realPath, o)
	if err != nil {
		return nil, openError(path, err)
	}
	db := &DB{
		path: path, realPath: realPath, options: o, file: f, collections: make(map[string]*backend),
		queue: newQueue(), done: make(chan struct{}),
	}
	db.update = func(f func(*bbolt.Tx) error) error { return db.file.Update(f) }
	if err = db.readHeader(); err == nil && o.RestoredFromBackup {
		err = db.startNewEpoch(listwatch.Version(time.Now().UnixMicro()))
	}
	if err == nil {
		err = db.shrinkAboveThreshold()
	}
	if err != nil {
		return nil, openError(path, errors.Join(err, db.file.Close()))
	}
	db.published = db.last
	db.revision.Advance(db.last)
	go db.commitLoop() // Close waits for it
	return db, nil
}

func (db *DB) readHeader() error {
	return catchPanic(func() error {
		return db.file.View(func(tx *bbolt.Tx) error {
			h, err := readHeader(tx)
			if err != nil {
				return err
			}
			if h.backedUp != "" && !db.options.RestoredFromBackup {
				return errBackup(h.backedUp)
			}
			db.epoch, db.last = h.epoch, h.last
			text, err := db.options.Transformer.FromStorage(store.Location{}, bytes.Clone(h.storedText))
			if err != nil || string(text) != knownText {
				return &listwatch.Error{
					Code: listwatch.Invalid, Message: "the file was written with another Transformer", Err: err,
				}
			}
			return nil
		})
	})
}

// Collection adds the collection that s declares, with its content in the file. If the
// database has a collection of the same plural and group, the error has code AlreadyExists.
// If the file contains the collection with another kind, API version or scope, the error
// has code Invalid, unless the collection is empty.
func (db *DB) Collection(s store.CollectionSpec) (*store.Collection, error) {
	s = s.WithDefaults()
	name := s.QualifiedName()
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case db.file == nil:
		return nil, errClosed()
	case db.damage != nil:
		return nil, db.damage
	case db.collections[name] != nil:
		return nil, &listwatch.Error{
			Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", name),
		}
	}
	for _, other := range db.collections {
		// A server usually receives no renewals before all collections are loaded.
		defer other.lifetimes.Pause()()
	}
	saved, left, err := db.load(s)
	if err != nil {
		return nil, openError(db.path, err)
	}
	log, err := history.Restore(history.Options{
		Retention: db.options.History, Description: s.Description(db.epoch), Revision: &db.revision,
	}, saved)
	if err != nil {
		return nil, openError(db.path, err)
	}
	b := &backend{db: db, name: name, Log: log, floor: saved.Floor, horizon: saved.Horizon}
	b.lifetimes = expiry.New(b.expire, db.now)
	b.restoreLifetimes(s, saved.Objects, left)
	db.collections[name] = b
	return store.New(s, b), nil
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

// Close completes the queued writes and closes the file. Later writes and renewals fail with code
// Unavailable. Objects can still be listed, and watches stay open. A second call has no effect.
//
// Close also saves the time that is left of each TTL. If it cannot, or if the process ends without
// Close, every object has its whole TTL after the next start.
func (db *DB) Close() error {
	db.queue.close()
	<-db.done
	for _, b := range db.all() { // without db.mu, because Stop waits for a hook
		b.lifetimes.Stop(errClosed())
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.file == nil {
		return nil
	}
	db.saveLifetimes()
	closeFile := db.file.Close
	if db.damage != nil {
		closeFile = db.file.abandon
	}
	db.file = nil
	return closeFile()
}

func (db *DB) all() []*backend {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Collect(maps.Values(db.collections))
}

// saveLifetimes writes the time that is left of each TTL. It reports no error, because without the
// saved times objects only live longer. The caller must hold db.mu.
func (db *DB) saveLifetimes() {
	saved := make(map[string][]byte)
	for name, b := range db.collections {
		if left := b.left(); len(left) > 0 {
			saved[name] = left.encode()
		}
	}
	if len(saved) == 0 || db.checkFile() != nil {
		return
	}
	_ = catchPanic(func() error {
		return db.update(func(tx *bbolt.Tx) error {
			for name, value := range saved {
				if err := tx.Bucket(headerBucket).Put(lifetimesKey(name), value); err != nil {
					return err
				}
			}
			return nil
		})
	})
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
