package bolt

import (
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

// commitLoop is the committer, the only goroutine that writes. It takes all queued requests,
// writes them in one transaction, and publishes them once they are on disk. Meanwhile the
// next requests are queued.
//
// A writer usually writes again as soon as its commit is acknowledged. If the committer did not
// wait a short time for these writes, the next transaction would contain only the fastest writer's
// write, and all other writers would wait for two transactions. So it waits, except after a
// transaction with a single write.
func (db *DB) commitLoop() {
	defer close(db.done)
	for {
		batch, more := db.queue.take()
		if !more {
			return
		}
		start := time.Now()
		if committed := db.commit(batch); committed > 1 {
			db.queue.gather(committed, min(time.Since(start)/gatherFraction, maxGather))
		}
	}
}

// The committer waits for more writers for 1/gatherFraction of the duration of the last
// transaction, but at most maxGather. Without that limit, a slow transaction, for example after a
// wait for [DB.Shrink], would delay the next transaction.
const (
	gatherFraction = 8
	maxGather      = 20 * time.Millisecond
)

// A pendingWrite is a request to which a version has been assigned.
type pendingWrite struct {
	*request
	record   history.Record
	encoded  []byte // record as stored in the file
	departed []byte // the departure as stored in the file; nil if there is none
}

// commit writes the requests in batch, and trims the history, in one transaction. It returns the
// number of writes committed.
func (db *DB) commit(batch []*request) int {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.began.Store(time.Now().UnixNano())
	defer db.began.Store(0)
	writes := db.plan(batch, time.Now())
	trims := db.planTrims(len(writes))
	if len(writes) == 0 && len(trims) == 0 {
		return 0
	}
	start := time.Now()
	err := db.write(writes, trims)
	db.began.Store(0) // before the writers learn the outcome, because they may call Ready
	if t := db.options.Trace; t != nil && t.Committed != nil {
		t.Committed(len(writes), time.Since(start), err)
	}
	if err != nil {
		for _, w := range writes {
			w.finish(nil, err)
		}
		return 0
	}
	for i := range trims {
		trims[i].backend.floor, trims[i].backend.horizon = trims[i].reached, trims[i].horizonReached
		if trims[i].more {
			db.queue.wake()
		}
	}
	db.publish(writes)
	return len(writes)
}

// plan assigns versions to the requests in batch that can be written, and finishes all others with
// an error. If batch has two writes to one object, the second write returns to the queue until the
// first one is on disk. Otherwise the second write could report a conflict with a write that then
// fails.
func (db *DB) plan(batch []*request, now time.Time) []pendingWrite {
	type objectKey struct {
		*backend
		listwatch.Key
	}
	planned := make(map[objectKey]bool, len(batch))
	writes := make([]pendingWrite, 0, len(batch))
	var later []*request
	for _, r := range batch {
		key := objectKey{r.backend, r.change.Key}
		if planned[key] {
			later = append(later, r)
			continue
		}
		if !r.state.CompareAndSwap(queued, committing) {
			continue // canceled
		}
		w, err := db.prepare(r, now)
		if err != nil {
			r.finish(nil, err)
			continue
		}
		planned[key] = true
		writes = append(writes, w)
	}
	db.queue.putBack(later)
	return writes
}

// prepare checks r against the current state and encodes its record under the next version.
func (db *DB) prepare(r *request, now time.Time) (w pendingWrite, err error) {
	if db.damage != nil {
		return w, db.damage
	}
	key, old := r.change.Key, r.backend.Log.Get(r.change.Key)
	if err := r.change.Check(old); err != nil {
		return w, err
	}
	if r.expires && !r.backend.lifetimes.Claim(key) {
		return w, errRenewed
	}
	version := db.last + 1
	w = pendingWrite{request: r, record: history.Record{Version: version, Old: old}}
	stored := record{deleted: r.change.New == nil, at: now.UnixNano(), previous: versionAt(old), key: key}
	if !stored.deleted {
		w.record.New = r.change.New.Seal(version)
		at := store.Location{Collection: r.backend.name, Key: key, Version: version}
		if stored.data, err = db.options.Transformer.ToStorage(at, w.record.New.Data); err != nil {
			return w, transformerError(err)
		}
	}
	w.encoded = stored.appendTo(make([]byte, 0, len(stored.data)+len(key.Namespace)+len(key.Name)+32), version)
	if w.departed, err = w.departure(db.options.Transformer); err != nil {
		return w, transformerError(err)
	}
	db.last = version
	return w, nil
}

func transformerError(err error) error {
	return &listwatch.Error{Code: listwatch.Unavailable, Message: "the Transformer of the data file failed", Err: err}
}

// write performs one transaction. If it fails, its versions are never assigned again,
// because the transaction may be in the file nevertheless: its last step may have failed
// after the data was written. The next transaction starts by reverting the failed one.
func (db *DB) write(writes []pendingWrite, trims []trim) error {
	if err := db.checkFile(); err != nil {
		return err
	}
	err := catchPanic(func() error {
		return db.update(func(tx *bbolt.Tx) error {
			if db.uncertain {
				if err := db.deleteUnpublished(tx); err != nil {
					return err
				}
			}
			if err := putRecords(tx, writes); err != nil {
				return err
			}
			for i := range trims {
				if err := trims[i].run(tx); err != nil {
					return err
				}
			}
			last := keyOf(db.last)
			return tx.Bucket(headerBucket).Put(lastKey, last[:])
		})
	})
	db.uncertain = err != nil
	if err != nil {
		err = writeError(db.realPath, err)
		if listwatch.CodeOf(err) == listwatch.Corrupt {
			db.damage = err
		}
	}
	return err
}

// putRecords writes the records and the departures of writes, and adds them to the record counts.
func putRecords(tx *bbolt.Tx, writes []pendingWrite) error {
	added := make(map[string][]listwatch.Version)
	put := func(name string, v listwatch.Version, stored []byte) error {
		b, key := tx.Bucket(bucketOf(name)), keyOf(v)
		b.FillPercent = appendFill
		added[name] = append(added[name], v)
		return b.Put(key[:], stored)
	}
	for _, w := range writes {
		if err := put(w.backend.name, w.record.Version, w.encoded); err != nil {
			return err
		}
		if w.departed != nil {
			if err := put(departuresOf(w.backend.name), w.record.Version, w.departed); err != nil {
				return err
			}
		}
	}
	for name, versions := range added {
		if err := updateCount(tx, name, func(c *recordCount) { c.add(versions...) }); err != nil {
			return err
		}
	}
	return nil
}

// appendFill is the fill percentage of bbolt's pages of records. It is high because
// versions only grow: no record is ever inserted between two others.
const appendFill = 0.95

// deleteUnpublished deletes the records of a failed transaction.
func (db *DB) deleteUnpublished(tx *bbolt.Tx) error {
	var names []string
	for name := range db.collections {
		names = append(names, name, departuresOf(name))
	}
	for _, name := range names {
		var unpublished []listwatch.Version
		c := tx.Bucket(bucketOf(name)).Cursor()
		for k, _ := c.Last(); k != nil; k, _ = c.Prev() {
			v, err := versionOf(k)
			if err != nil || v <= db.published {
				break
			}
			unpublished = append(unpublished, v)
		}
		if err := deleteRecords(tx, name, unpublished); err != nil {
			return err
		}
	}
	return nil
}

// publish makes writes visible in version order, and then acknowledges them.
func (db *DB) publish(writes []pendingWrite) {
	if len(writes) == 0 {
		return
	}
	for _, w := range writes {
		w.backend.Append(w.record)
		w.backend.lifetimes.Set(w.change.Key, w.ttl())
		db.published = w.record.Version
	}
	db.revision.Advance(db.published)
	for _, w := range writes {
		o := w.record.New
		if o == nil {
			o = w.record.Old.At(w.record.Version)
		}
		w.finish(o, nil)
	}
}

// planTrims returns the trims that are due, for a transaction with the given number of
// writes. The caller must hold db.mu.
func (db *DB) planTrims(writes int) (trims []trim) {
	if db.damage != nil {
		return nil
	}
	steps := 2*writes + extraTrimSteps
	if writes == 0 {
		steps = idleTrimSteps
	}
	for _, b := range db.collections {
		if s := b.Log.Stats(); s.Oldest > b.floor || s.Horizon > b.horizon {
			trims = append(trims, trim{backend: b, floor: s.Oldest, horizon: s.Horizon, maxSteps: steps})
		}
	}
	return trims
}
