package bolt

import (
	"bytes"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
)

// load reads the collection that s declares, and removes the lifetimes that Close has saved. If the
// file does not contain the collection, load adds it. The caller must hold db.mu.
func (db *DB) load(s store.CollectionSpec) (saved history.SavedLog, left lifetimes, err error,
) {
	exists := false
	l := loader{spec: s, name: s.QualifiedName(), transformer: db.options.Transformer, newest: db.published}
	if t := db.options.Trace; t != nil {
		l.loading = t.Loading
	}
	err = catchPanic(func() error {
		return db.file.View(func(tx *bbolt.Tx) (err error) {
			if exists, err = isDeclared(tx, s); err != nil || !exists {
				return err
			}
			return l.read(tx)
		})
	})
	if err == nil && l.left != nil {
		err = catchPanic(func() error {
			return db.update(func(tx *bbolt.Tx) error { return tx.Bucket(headerBucket).Delete(lifetimesKey(l.name)) })
		})
	}
	if err != nil || exists {
		return l.saved, l.left, err
	}
	err = catchPanic(func() error {
		return db.update(func(tx *bbolt.Tx) error { return declare(tx, s, db.published) })
	})
	return history.SavedLog{Floor: db.published, Horizon: db.published}, nil, err
}

// A loader rebuilds the state and the history of one collection from its records.
type loader struct {
	spec        store.CollectionSpec
	name        string
	transformer store.Transformer
	newest      listwatch.Version                          // the version of the database
	loading     func(collection string, done, total int64) // may be nil

	saved history.SavedLog
	left  lifetimes // nil if none were saved
	count recordCount
	state map[listwatch.Key]*listwatch.Object
}

// loadingInterval is the number of records between two calls of Trace.Loading.
const loadingInterval = 1000

func (l *loader) read(tx *bbolt.Tx) (err error) {
	if l.saved.Floor, err = versionOf(tx.Bucket(headerBucket).Get(floorKey(l.name))); err != nil {
		return corruptf("the floor of %s: %w", l.name, err)
	}
	l.state = make(map[listwatch.Key]*listwatch.Object)
	b := tx.Bucket(bucketOf(l.name))
	if b == nil {
		return corruptf("%s is declared, but has no bucket for its records", l.name)
	}
	want, err := readCount(tx, l.name)
	if err != nil {
		return err
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if err := l.add(k, v); err != nil {
			return corruptf("%s: the record at %x: %w", l.name, k, err)
		}
		if done := l.count.count; l.loading != nil && done%loadingInterval == 0 {
			l.loading(l.name, int64(done), int64(want.count))
		}
	}
	if l.count != want {
		return corruptf("%s has %d records instead of the %d that were written", l.name, l.count.count, want.count)
	}
	if err := l.readDepartures(tx); err != nil {
		return err
	}
	if saved := tx.Bucket(headerBucket).Get(lifetimesKey(l.name)); saved != nil {
		if l.left, err = parseLifetimes(saved); err != nil {
			return err
		}
	}
	l.saved.Objects = make([]*listwatch.Object, 0, len(l.state))
	for _, o := range l.state {
		l.saved.Objects = append(l.saved.Objects, o)
	}
	return nil
}

// add applies the next record.
func (l *loader) add(key, value []byte) error {
	version, err := versionOf(key)
	if err != nil {
		return err
	}
	stored, err := parseRecord(value, version)
	if err != nil {
		return err
	}
	if version > l.newest {
		return fmt.Errorf("it is newer than the database, which is at version %d", l.newest)
	}
	l.count.add(version)
	r := history.Record{Version: version, Old: l.state[stored.key], At: time.Unix(0, stored.at)}
	if stored.deleted {
		delete(l.state, stored.key)
	} else {
		if r.New, err = l.decode(stored, version); err != nil {
			return err
		}
		l.state[stored.key] = r.New
	}
	if version <= l.saved.Floor {
		if stored.deleted || r.Old != nil {
			return fmt.Errorf("it should have been trimmed, because the history starts at version %d", l.saved.Floor)
		}
		return nil
	}
	if have := versionAt(r.Old); have != stored.previous {
		return fmt.Errorf("it replaced version %d of %v, but the version before it is %d",
			stored.previous, stored.key, have)
	}
	if stored.deleted && r.Old == nil {
		return fmt.Errorf("it deletes %v, which does not exist", stored.key)
	}
	l.saved.Records = append(l.saved.Records, r)
	return nil
}

// decode returns the object of a record. It copies the bytes, which belong to the file.
func (l *loader) decode(stored record, v listwatch.Version) (*listwatch.Object, error) {
	data, err := l.transformer.FromStorage(store.Location{Collection: l.name, Key: stored.key, Version: v}, stored.data)
	if err != nil {
		return nil, fmt.Errorf("transformer: %w", err)
	}
	o := &listwatch.Object{Key: stored.key, Version: v, Data: bytes.Clone(data)}
	o.Fields = l.spec.ReadFields(o.Data)
	if raw := rawjson.Lookup(o.Data, "metadata", "labels"); len(raw) > 0 {
		if o.Labels, err = rawjson.StringMap(raw); err != nil {
			return nil, fmt.Errorf("the labels of %v: %w", stored.key, err)
		}
	}
	return o, nil
}
