package bolt

import (
	"bytes"
	"crypto/rand"
	"math"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
)

// beginAnew gives the database another epoch and forgets all history. Clients that know epochs list again because of that; all others
// because what they have seen is older than the history, which begins at now; where the versions have come further, for the clock is behind
// or they began elsewhere, as far after them as nobody has written since the copy was made.
func (db *DB) beginAnew(now listwatch.Version) error {
	epoch, last := rand.Text(), now
	if last <= db.last {
		last = db.last + restoredLeap
	}
	err := guarded(func() error {
		return db.bolt.Update(func(tx *bbolt.Tx) error {
			if err := forget(tx, last); err != nil {
				return err
			}
			b, key := tx.Bucket(headerBucket), keyOf(last)
			if err := b.Put(lastKey, key[:]); err != nil {
				return err
			}
			return b.Put(epochKey, []byte(epoch))
		})
	})
	if err == nil {
		db.epoch, db.last = epoch, last
	}
	return err
}

const restoredLeap = 1 << 32

// forget trims the history of all collections up to v, which is the newest version or later.
func forget(tx *bbolt.Tx, v listwatch.Version) error {
	var trims []trim
	prefix := floorKey("")
	c := tx.Bucket(headerBucket).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		trims = append(trims, trim{backend: &backend{name: string(k[len(prefix):])}, to: v, steps: math.MaxInt})
	}
	for i := range trims {
		if err := trims[i].run(tx); err != nil {
			return err
		}
	}
	return nil
}
