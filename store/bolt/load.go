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

// load reads the collection that r declares, and declares it in the file if it is new there. db.file is held.
func (db *DB) load(r store.CollectionSpec) (past history.SavedLog, err error) {
	known := false
	l := loader{resource: r, name: r.QualifiedName(), transformer: db.options.Transformer, last: db.published}
	err = guarded(func() error {
		return db.bolt.View(func(tx *bbolt.Tx) (err error) {
			if known, err = isDeclared(tx, r); err != nil || !known {
				return err
			}
			return l.read(tx)
		})
	})
	if err != nil || known {
		return l.past, err
	}
	err = guarded(func() error {
		return db.transact(func(tx *bbolt.Tx) error { return declare(tx, r, db.published) })
	})
	return history.SavedLog{Floor: db.published}, err
}

// A loader makes of the records of one collection its state and its history.
type loader struct {
	resource    store.CollectionSpec
	name        string
	transformer Transformer
	last        listwatch.Version // of the database

	past  history.SavedLog
	tally tally
	state map[listwatch.Key]*listwatch.Object
}

func (l *loader) read(tx *bbolt.Tx) (err error) {
	if l.past.Floor, err = versionOf(tx.Bucket(headerBucket).Get(floorKey(l.name))); err != nil {
		return corruptf("the floor of %s: %w", l.name, err)
	}
	l.state = make(map[listwatch.Key]*listwatch.Object)
	b := tx.Bucket(bucketOf(l.name))
	if b == nil {
		return corruptf("%s is declared, but there is no bucket of its records", l.name)
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if err := l.add(k, v); err != nil {
			return corruptf("%s: the record at %x: %w", l.name, k, err)
		}
	}
	switch want, err := readTally(tx, l.name); {
	case err != nil:
		return err
	case l.tally != want:
		return corruptf("%s: there are %d records, and not the %d that were written", l.name, l.tally.count, want.count)
	}
	l.past.Objects = make([]*listwatch.Object, 0, len(l.state))
	for _, o := range l.state {
		l.past.Objects = append(l.past.Objects, o)
	}
	return nil
}

// add takes the next record.
func (l *loader) add(key, value []byte) error {
	version, err := versionOf(key)
	if err != nil {
		return err
	}
	rec, err := parseRecord(value, version)
	if err != nil {
		return err
	}
	if version > l.last {
		return fmt.Errorf("it is newer than the database, which is at %d", l.last)
	}
	l.tally.add(version)
	change := history.Record{Version: version, Old: l.state[rec.key], At: time.Unix(0, rec.at)}
	if rec.deleted {
		delete(l.state, rec.key)
	} else {
		if change.New, err = l.object(rec, version); err != nil {
			return err
		}
		l.state[rec.key] = change.New
	}
	if version <= l.past.Floor {
		if rec.deleted || change.Old != nil {
			return fmt.Errorf("the history begins at %d, and it is of before without being the state then", l.past.Floor)
		}
		return nil
	}
	if have := versionAt(change.Old); have != rec.previous {
		return fmt.Errorf("it replaced %v of version %d, but before it there is version %d", rec.key, rec.previous, have)
	}
	if rec.deleted && change.Old == nil {
		return fmt.Errorf("it deletes %v, which is not there", rec.key)
	}
	l.past.Records = append(l.past.Records, change)
	return nil
}

// versionAt returns the version of o; zero where there is none.
func versionAt(o *listwatch.Object) listwatch.Version {
	if o == nil {
		return 0
	}
	return o.Version
}

// object makes the object of a record, out of bytes of its own: those of the record belong to the file.
func (l *loader) object(rec record, v listwatch.Version) (*listwatch.Object, error) {
	data, err := l.transformer.FromStorage(Location{Collection: l.name, Key: rec.key, Version: v}, rec.data)
	if err != nil {
		return nil, fmt.Errorf("transformer: %w", err)
	}
	o := &listwatch.Object{Key: rec.key, Version: v, Data: bytes.Clone(data)}
	o.Fields = l.resource.ReadFields(o.Data)
	if raw := rawjson.Lookup(o.Data, "metadata", "labels"); len(raw) > 0 {
		if o.Labels, err = rawjson.StringMap(raw); err != nil {
			return nil, fmt.Errorf("the labels of %v: %w", rec.key, err)
		}
	}
	return o, nil
}
