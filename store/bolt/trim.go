package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
)

// A trim takes history that the log of a collection has forgotten from the file, some records at a time.
type trim struct {
	// Immutable.
	backend *backend
	to      listwatch.Version // what the log remembers begins after it
	steps   int               // records that may be looked at

	reached listwatch.Version // the floor of the file afterwards
	more    bool              // steps was not enough
}

// The steps of one transaction: twice as many as it adds and some more, so that the file catches up; all of trimIdle where nothing is written.
const (
	trimExtra = 64
	trimIdle  = 4096
)

// planTrims returns what there is to trim beside a number of writes. db.file is held.
func (db *DB) planTrims(writes int) (trims []trim) {
	if db.broken != nil {
		return nil
	}
	steps := 2*writes + trimExtra
	if writes == 0 {
		steps = trimIdle
	}
	for _, b := range db.collections {
		if to := b.Stats().Floor; to > b.floor {
			trims = append(trims, trim{backend: b, to: to, steps: steps})
		}
	}
	return trims
}

// run deletes what the records up to t.to replaced, and those of them that are deletes.
func (t *trim) run(tx *bbolt.Tx) error {
	b, header := tx.Bucket(bucketOf(t.backend.name)), tx.Bucket(headerBucket)
	// The floor of the file, not that of the backend: a transaction that failed may have raised it nevertheless.
	floor, err := versionOf(header.Get(floorKey(t.backend.name)))
	if err != nil {
		return damaged{err}
	}
	var gone []listwatch.Version
	t.reached, t.more = max(t.to, floor), false
	from, steps := keyOf(floor+1), 0
	c := b.Cursor()
	for k, value := c.Seek(from[:]); k != nil; k, value = c.Next() {
		v, err := versionOf(k)
		if err != nil {
			return damaged{err}
		}
		if v > t.to {
			break
		}
		if steps++; steps > t.steps {
			t.reached, t.more = v-1, true
			break
		}
		rec, err := parseRecord(value, v)
		if err != nil {
			return damaged{err}
		}
		if rec.previous != 0 {
			gone = append(gone, rec.previous)
		}
		if rec.deleted {
			gone = append(gone, v)
		}
	}
	for _, v := range gone {
		key := keyOf(v)
		if err := b.Delete(key[:]); err != nil {
			return err
		}
	}
	err = recount(tx, t.backend.name, func(sum *tally) {
		for _, v := range gone {
			sum.remove(v)
		}
	})
	if err != nil {
		return err
	}
	reached := keyOf(t.reached)
	return header.Put(floorKey(t.backend.name), reached[:])
}
