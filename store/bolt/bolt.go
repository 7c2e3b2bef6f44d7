package bolt

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

// A DB is a set of collections with one counter of versions, in one file. It is safe for concurrent use.
type DB struct {
	// Immutable after construction.
	path    string // as it was given, to speak of
	at      string // absolute, without links
	options Options
	epoch   string
	head    history.Revision
	queue   queue
	done    chan struct{} // closed when the committer has ended

	file sync.Mutex // taken before the locks of a log, never after
	// Guarded by file.
	bolt        *file               // nil: closed
	last        listwatch.Version   // the newest that was given out
	published   listwatch.Version   // the newest of the file for certain, which is what everybody can see; Head follows
	collections map[string]*backend // by qualified name
	doubtful    bool                // a transaction has failed, and may be in the file nevertheless
	broken      error               // nothing more can be written
	transact    func(func(*bbolt.Tx) error) error
}

// Open opens the database in the file at path, and makes it where there is none; its directory must be there. The caller closes it.
//
// The error has code Unavailable where another process has the file for longer than o.LockWait, or the disk is full; Forbidden where file
// or directory can't be written; Invalid where the file is none of this store, or one of another Transformer; Unsupported where a newer
// version of this store wrote it; Corrupt where it is cut off or damaged. The file is not changed then.
func Open(path string, o Options) (*DB, error) {
	o = o.withDefaults()
	at, err := locate(path)
	if err != nil {
		return nil, openError(path, err)
	}
	b, err := open(at, o)
	if err != nil {
		return nil, openError(path, err)
	}
	db := &DB{
		path: path, at: at, options: o, bolt: b, collections: make(map[string]*backend),
		queue: newQueue(), done: make(chan struct{}),
	}
	db.transact = func(f func(*bbolt.Tx) error) error { return db.bolt.Update(f) }
	if err = db.readHeader(); err == nil && o.RestoredFromBackup {
		err = db.beginAnew(listwatch.Version(time.Now().UnixMicro()))
	}
	if err == nil {
		err = db.shrinkIfWorthIt()
	}
	if err != nil {
		return nil, openError(path, errors.Join(err, db.bolt.Close()))
	}
	db.published = db.last
	db.head.Advance(db.last)
	go db.run() // Close waits for it
	return db, nil
}

func (db *DB) readHeader() error {
	return guarded(func() error {
		return db.bolt.View(func(tx *bbolt.Tx) error {
			h, err := readHeader(tx)
			if err != nil {
				return err
			}
			db.epoch, db.last = h.epoch, h.last
			text, err := db.options.Transformer.FromStorage(Location{}, append([]byte(nil), h.probe...))
			if err != nil || string(text) != probeText {
				return &listwatch.Error{Code: listwatch.Invalid, Message: "the file was written with another Transformer", Err: err}
			}
			return nil
		})
	})
}

// Collection adds the collection that r declares, with what the file has of it. A second one of the same plural and group is an error of
// code AlreadyExists; one that the file keeps as another kind, API version or scope is Invalid, unless there is nothing in it.
func (db *DB) Collection(r store.CollectionSpec) (*store.Collection, error) {
	r = r.WithDefaults()
	name := r.QualifiedName()
	db.file.Lock()
	defer db.file.Unlock()
	switch {
	case db.bolt == nil:
		return nil, errClosed(db.path)
	case db.broken != nil:
		return nil, db.broken
	case db.collections[name] != nil:
		return nil, &listwatch.Error{Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", name)}
	}
	past, err := db.load(r)
	if err != nil {
		return nil, openError(db.path, err)
	}
	log, err := history.Restore(history.Options{
		MaxAge: db.options.HistoryAge, MaxBytes: db.options.HistoryBytes, FrameCacheBytes: db.options.FrameCacheBytes,
		Description: r.Description(db.epoch), Revision: &db.head,
	}, past)
	if err != nil {
		return nil, openError(db.path, err)
	}
	b := &backend{db: db, name: name, Log: log, floor: past.Floor}
	db.collections[name] = b
	return store.New(r, b), nil
}

// Version returns that of the newest write; before the first, the one that the database began with.
func (db *DB) Version() listwatch.Version { return db.head.Version() }

// Epoch returns the random text that tells this file from others. It was made with the file.
func (db *DB) Epoch() string { return db.epoch }

// Path returns the name that the file was opened by.
func (db *DB) Path() string { return db.path }

// Compact forgets all history: a watch from any version before the newest is Expired. Watches that have read everything go on. The file
// forgets it after that, little by little between writes; see Shrink for its size.
func (db *DB) Compact() {
	db.file.Lock()
	defer db.file.Unlock()
	for _, b := range db.collections {
		b.Compact()
	}
	db.queue.wake()
}

// Close lets the writes that wait come to their end and closes the file. Every later write fails with code Unavailable; what was read
// can still be listed, and watches don't end. A second call does nothing.
func (db *DB) Close() error {
	db.queue.close()
	<-db.done
	db.file.Lock()
	defer db.file.Unlock()
	if db.bolt == nil {
		return nil
	}
	closing := db.bolt.Close
	if db.broken != nil {
		closing = db.bolt.abandon
	}
	db.bolt = nil
	return closing()
}
