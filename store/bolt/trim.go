package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
)

// A trim deletes from the file the history that the log of a collection has dropped. Each
// run examines a limited number of records.
type trim struct {
	// Immutable.
	backend  *backend
	floor    listwatch.Version // the floor of the log
	horizon  listwatch.Version // the horizon of the log
	maxSteps int               // the number of records, and of departures, that a run examines

	// Results of run.
	reached        listwatch.Version // the new floor of the file
	horizonReached listwatch.Version // the new horizon of the file
	more           bool              // the run ended because of maxSteps
}

// A transaction with writes examines twice as many records as it adds, plus extraTrimSteps,
// so that trimming catches up. A transaction without writes examines idleTrimSteps records.
const (
	extraTrimSteps = 64
	idleTrimSteps  = 4096
)

// run raises the floor and the horizon in the file. It deletes the records below the floor that are
// obsolete, and the departures below the horizon.
func (t *trim) run(tx *bbolt.Tx) (err error) {
	if err := t.runRecords(tx); err != nil {
		return err
	}
	t.horizonReached, err = trimDepartures(tx, t.backend.name, t.horizon, t.maxSteps)
	t.more = t.more || t.horizonReached < t.horizon
	return err
}

func (t *trim) runRecords(tx *bbolt.Tx) error {
	name, header := t.backend.name, tx.Bucket(headerBucket)
	// The floor in the file can be above t.floor, because an earlier transaction that returned an
	// error may have been written nevertheless.
	from, err := versionOf(header.Get(floorKey(name)))
	if err != nil {
		return damagedError{err}
	}
	obsolete, err := t.findObsolete(tx.Bucket(bucketOf(name)), from)
	if err != nil {
		return damagedError{err}
	}
	if err := deleteRecords(tx, name, obsolete); err != nil {
		return err
	}
	reached := keyOf(t.reached)
	return header.Put(floorKey(name), reached[:])
}

// findObsolete examines the records with a version greater than from and at most t.floor. It
// returns the versions of the records that the examined records replaced, and of the examined
// deletes.
func (t *trim) findObsolete(records *bbolt.Bucket, from listwatch.Version) (obsolete []listwatch.Version, err error) {
	t.reached, t.more = max(t.floor, from), false
	steps, start := 0, keyOf(from+1)
	c := records.Cursor()
	for k, value := c.Seek(start[:]); k != nil; k, value = c.Next() {
		v, err := versionOf(k)
		if err != nil {
			return nil, err
		}
		if v > t.floor {
			break
		}
		if steps++; steps > t.maxSteps {
			t.reached, t.more = v-1, true
			break
		}
		r, err := parseRecord(value, v)
		if err != nil {
			return nil, err
		}
		if r.previous != 0 {
			obsolete = append(obsolete, r.previous)
		}
		if r.deleted {
			obsolete = append(obsolete, v)
		}
	}
	return obsolete, nil
}
