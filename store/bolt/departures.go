package bolt

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

// The file keeps the departures of a collection longer than its records, so that a client can
// receive a difference after a restart. Departures have a bucket of their own with the format of a
// collection: each is a record with a departed as its data. The bucket has a record count, and its
// floor is the horizon.

// departuresOf returns the name under which the departures of a collection are stored.
func departuresOf(collection string) string { return collection + "/departures" }

// A departed has the attributes of an object before a write that selectors can match, without its
// key.
type departed struct {
	Labels map[string]string `json:"labels,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
}

// departure returns the departure that w causes, as it is stored in the file. It returns nil if w
// causes none.
func (w *pendingWrite) departure(t store.Transformer) ([]byte, error) {
	r := w.record
	if !departures.Departs(r.Old, r.New) {
		return nil, nil
	}
	data, err := json.Marshal(departed{r.Old.Labels, r.Old.Fields})
	if err != nil {
		return nil, err
	}
	at := store.Location{Collection: w.backend.name, Key: r.Old.Key, Version: r.Version}
	if data, err = t.ToStorage(at, data); err != nil {
		return nil, err
	}
	return record{key: r.Old.Key, data: data}.appendTo(nil, r.Version), nil
}

// declareDepartures adds or empties the bucket of the departures of a collection. From v on, every
// departure is written to it.
func declareDepartures(tx *bbolt.Tx, collection string, v listwatch.Version) error {
	name := departuresOf(collection)
	if err := tx.DeleteBucket(bucketOf(name)); err != nil && !errors.Is(err, berrors.ErrBucketNotFound) {
		return err
	}
	if _, err := tx.CreateBucket(bucketOf(name)); err != nil {
		return err
	}
	horizon := keyOf(v)
	if err := tx.Bucket(headerBucket).Put(floorKey(name), horizon[:]); err != nil {
		return err
	}
	return recordCount{}.write(tx, name)
}

// trimDepartures deletes the departures up to horizon, at most maxSteps of them. It returns the new
// horizon of the file.
func trimDepartures(
	tx *bbolt.Tx, collection string, horizon listwatch.Version, maxSteps int,
) (reached listwatch.Version, err error) {
	name := departuresOf(collection)
	var obsolete []listwatch.Version
	reached = horizon
	c := tx.Bucket(bucketOf(name)).Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		v, err := versionOf(k)
		if err != nil {
			return 0, damagedError{err}
		}
		if v > horizon {
			break
		}
		if len(obsolete) == maxSteps {
			reached = v - 1
			break
		}
		obsolete = append(obsolete, v)
	}
	if err := deleteRecords(tx, name, obsolete); err != nil {
		return 0, err
	}
	key := keyOf(reached)
	return reached, tx.Bucket(headerBucket).Put(floorKey(name), key[:])
}

// readDepartures reads the departures that the records of l do not show, and the horizon.
func (l *loader) readDepartures(tx *bbolt.Tx) error {
	name := departuresOf(l.name)
	horizon, err := versionOf(tx.Bucket(headerBucket).Get(floorKey(name)))
	b := tx.Bucket(bucketOf(name))
	if err != nil || b == nil {
		return corruptf("%s has no departures: %w", l.name, err)
	}
	l.saved.Horizon = min(horizon, l.saved.Floor)
	var count recordCount
	c := b.Cursor()
	for k, value := c.First(); k != nil; k, value = c.Next() {
		v, err := versionOf(k)
		if err == nil {
			count.add(v)
			err = l.addDeparture(v, value, horizon)
		}
		if err != nil {
			return corruptf("%s: the departure at %x: %w", l.name, k, err)
		}
	}
	switch want, err := readCount(tx, name); {
	case err != nil:
		return err
	case count != want:
		return corruptf("%s has %d departures instead of the %d that were written", l.name, count.count, want.count)
	}
	return nil
}

func (l *loader) addDeparture(v listwatch.Version, value []byte, horizon listwatch.Version) error {
	stored, err := parseRecord(value, v)
	if err != nil || v <= horizon || v > l.saved.Floor {
		return err
	}
	data, err := l.transformer.FromStorage(store.Location{Collection: l.name, Key: stored.key, Version: v}, stored.data)
	if err != nil {
		return fmt.Errorf("transformer: %w", err)
	}
	var d departed
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	old := &listwatch.Object{Key: stored.key, Labels: d.Labels, Fields: d.Fields}
	l.saved.Departures = append(l.saved.Departures, history.Departure{Version: v, Old: old})
	return nil
}
