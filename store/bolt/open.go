package bolt

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

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
	b := &backend{db: db, name: name, Log: log, floor: saved.Floor, horizon: saved.Horizon}
	db.collections[name] = b
	return store.New(s, b), nil
}
