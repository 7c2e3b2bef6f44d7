package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	file        *file               // nil after Close
	last        listwatch.Version   // the newest version assigned to a write
	published   listwatch.Version   // the newest version on disk; revision is advanced to it
	collections map[string]*backend // by qualified name
	uncertain   bool                // the last transaction failed, but may be in the file
	// damage is nil if the file is intact. Otherwise every write fails with this error.
	damage error
	update func(func(*bbolt.Tx) error) error
}

// Open opens the database in the file at path. If there is no file, Open creates it; the
// directory must exist. The caller must close the database.
//
// If Open fails, the file is unchanged, or has only got the new epoch that
// [Options].RestoredFromBackup requests. The code of the error is
//   - Unavailable if another process has the file open for longer than o.LockTimeout, or the
//     disk is full,
//   - Forbidden if the file or its directory cannot be written,
//   - Invalid if this package did not write the file, or wrote it with another Transformer,
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
			db.epoch, db.last = h.epoch, h.last
			text, err := db.options.Transformer.FromStorage(Location{}, append([]byte(nil), h.storedText...))
			if err != nil || string(text) != knownText {
				return &listwatch.Error{Code: listwatch.Invalid, Message: "the file was written with another Transformer", Err: err}
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
		return nil, &listwatch.Error{Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", name)}
	}
	saved, err := db.load(s)
	if err != nil {
		return nil, openError(db.path, err)
	}
	log, err := history.Restore(history.Options{
		Retention: db.options.History, Description: s.Description(db.epoch), Revision: &db.revision,
	}, saved)
	if err != nil {
		return nil, openError(db.path, err)
	}
	b := &backend{db: db, name: name, Log: log, floor: saved.Floor}
	db.collections[name] = b
	return store.New(s, b), nil
}

// Version returns the version of the newest write. Before the first write it returns the
// start version.
func (db *DB) Version() listwatch.Version { return db.revision.Version() }

// Epoch returns the random text that distinguishes this file from others. It was chosen when
// the file was created or restored from a backup.
func (db *DB) Epoch() string { return db.epoch }

// Ready returns an error if all writes fail until an operator acts: the file was deleted, replaced
// or overwritten while it was open, it is damaged, or the database is closed. If the file returns
// to its path, writes succeed again, but a file that was overwritten must be opened again. Ready
// notices an overwrite by the size of the file and its headers, which any other writer changes. The
// text of the error does not contain the path, so that a server can send it to clients. Ready waits
// for a transaction in progress.
func (db *DB) Ready(context.Context) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.file == nil {
		return errClosed()
	}
	return db.checkFile()
}

// Path returns the path that was passed to Open.
func (db *DB) Path() string { return db.path }

// RealPath returns the absolute path of the file, without symbolic links.
func (db *DB) RealPath() string { return db.realPath }

// Compact drops all history: a watch that starts at any version but the newest is Expired.
// Open watches that have read every event continue. The history is removed from the file
// afterwards, a few records after each write. The file does not get smaller; see [DB.Shrink].
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

// A backend keeps one collection. It serves lists and watches from its log.
type backend struct {
	*history.Log
	// Immutable after construction.
	db   *DB
	name string

	floor listwatch.Version // the floor in the file, at most the floor of the log; guarded by db.mu
}

var _ store.Backend = (*backend)(nil)

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

// versionAt returns the version of o, or 0 if o is nil.
func versionAt(o *listwatch.Object) listwatch.Version {
	if o == nil {
		return 0
	}
	return o.Version
}
