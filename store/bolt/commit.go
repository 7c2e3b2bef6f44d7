package bolt

import (
	"time"

	"go.etcd.io/bbolt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// run is the committer, the one goroutine that writes: it takes all requests that wait, writes them in one transaction, and shows them to
// everybody once they are on disk. While it waits for the disk the next ones gather.
//
// Writers who were just told come again in a moment. Without them the next transaction would be made for the one who is quickest, and
// all others would wait for two. So they are waited for, a small part of the time that a transaction takes; a single writer never is.
func (db *DB) run() {
	defer close(db.done)
	for {
		batch, more := db.queue.take()
		if !more {
			return
		}
		start := time.Now()
		if told := db.commit(batch); told > 1 {
			db.queue.gather(told, min(time.Since(start)/gatherPart, gatherMost))
		}
	}
}

// What the committer may wait for writers: a part of the time of a transaction, but not of that in which the disk stood still or the file was
// shrunk.
const (
	gatherPart = 8
	gatherMost = 20 * time.Millisecond
)

// A write is a request with its version.
type write struct {
	*request
	change history.Record
	record []byte
}

// commit makes one transaction of batch, and of history that is to be forgotten, and returns how many writers were told.
func (db *DB) commit(batch []*request) (told int) {
	db.file.Lock()
	defer db.file.Unlock()
	writes := db.plan(batch, time.Now())
	trims := db.planTrims(len(writes))
	if len(writes) == 0 && len(trims) == 0 {
		return 0
	}
	if err := db.write(writes, trims); err != nil {
		for _, w := range writes {
			w.finish(nil, err)
		}
		return 0
	}
	for i := range trims {
		trims[i].backend.floor = trims[i].reached
		if trims[i].more {
			db.queue.wake()
		}
	}
	db.publish(writes)
	return len(writes)
}

// plan gives versions to those requests of batch that can be written. The others end here, or go back to the queue: of two writes to one
// object the second is judged when the first is on disk, so that nobody is told of a conflict with what was never written.
func (db *DB) plan(batch []*request, now time.Time) []write {
	type place struct {
		*backend
		listwatch.Key
	}
	seen := make(map[place]bool, len(batch))
	writes := make([]write, 0, len(batch))
	var later []*request
	for _, r := range batch {
		at := place{r.backend, r.change.Key}
		if seen[at] {
			later = append(later, r)
			continue
		}
		if !r.state.CompareAndSwap(queued, taken) {
			continue // withdrawn
		}
		w, err := db.prepare(r, now)
		if err != nil {
			r.finish(nil, err)
			continue
		}
		seen[at] = true
		writes = append(writes, w)
	}
	db.queue.putBack(later)
	return writes
}

// prepare checks r against the state and makes its record, under the next version.
func (db *DB) prepare(r *request, now time.Time) (w write, err error) {
	if db.broken != nil {
		return w, db.broken
	}
	key, old := r.change.Key, r.backend.Log.Get(r.change.Key)
	if versionAt(old) != versionAt(r.change.Old) {
		return w, &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
	}
	if old == nil && r.change.New == nil {
		return w, &listwatch.Error{Code: listwatch.NotFound, Message: "there is nothing to delete"}
	}
	version := db.last + 1
	w = write{request: r, change: history.Record{Version: version, Old: old}}
	rec := record{deleted: r.change.New == nil, at: now.UnixNano(), previous: versionAt(old), key: key}
	if !rec.deleted {
		w.change.New = r.change.New.Seal(version)
		place := Location{Collection: r.backend.name, Key: key, Version: version}
		if rec.data, err = db.options.Transformer.ToStorage(place, w.change.New.Data); err != nil {
			return w, &listwatch.Error{Code: listwatch.Unavailable, Message: "the transformer of " + db.path, Err: err}
		}
	}
	w.record = rec.appendTo(make([]byte, 0, len(rec.data)+len(key.Namespace)+len(key.Name)+32), version)
	db.last = version
	return w, nil
}

// write writes everything in one transaction. Where that fails the versions are not used again: the failure may have been the last step,
// after which the transaction is in the file. The next transaction begins by taking that back.
func (db *DB) write(writes []write, trims []trim) error {
	err := guarded(func() error {
		return db.transact(func(tx *bbolt.Tx) error {
			if db.doubtful {
				if err := db.takeBack(tx); err != nil {
					return err
				}
			}
			if err := put(tx, writes); err != nil {
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
	db.doubtful = err != nil
	if err != nil {
		err = writeError(db.path, err)
		if listwatch.CodeOf(err) == listwatch.Corrupt {
			db.broken = err
		}
	}
	return err
}

// put adds the records of writes.
func put(tx *bbolt.Tx, writes []write) error {
	added := make(map[string][]listwatch.Version)
	for _, w := range writes {
		b := tx.Bucket(bucketOf(w.backend.name))
		b.FillPercent = appendFill
		key := keyOf(w.change.Version)
		if err := b.Put(key[:], w.record); err != nil {
			return err
		}
		added[w.backend.name] = append(added[w.backend.name], w.change.Version)
	}
	for name, versions := range added {
		err := recount(tx, name, func(t *tally) {
			for _, v := range versions {
				t.add(v)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// appendFill is how full the pages of records become: versions only grow, so that nothing will be put between them.
const appendFill = 0.95

// takeBack deletes the records that nobody was told of.
func (db *DB) takeBack(tx *bbolt.Tx) error {
	for name := range db.collections {
		c, gone := tx.Bucket(bucketOf(name)).Cursor(), tally{}
		for k, _ := c.Last(); k != nil; k, _ = c.Last() {
			v, err := versionOf(k)
			if err != nil || v <= db.published {
				break
			}
			gone.add(v)
			if err := c.Delete(); err != nil {
				return err
			}
		}
		err := recount(tx, name, func(t *tally) { t.count, t.sum = t.count-gone.count, t.sum-gone.sum })
		if err != nil {
			return err
		}
	}
	return nil
}

// publish shows writes to everybody, in the order of their versions, and tells the writers.
func (db *DB) publish(writes []write) {
	if len(writes) == 0 {
		return
	}
	for _, w := range writes {
		w.backend.Append(w.change)
		db.published = w.change.Version
	}
	db.head.Advance(db.published)
	for _, w := range writes {
		o := w.change.New
		if o == nil {
			o = w.change.Old.At(w.change.Version)
		}
		w.finish(o, nil)
	}
}
