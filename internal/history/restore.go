package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
)

// A SavedLog is the content of a Log that a store has saved: the state, and the known
// writes that led to it. The zero SavedLog is an empty collection at version 0.
type SavedLog struct {
	// Objects are the state after the last record, in any order.
	Objects []*listwatch.Object
	// Records are all writes after Floor, oldest first, and in key order within one version.
	// Restore takes ownership of the slice. If the time At of a record is in the future, Restore
	// replaces it with the current time.
	Records []Record
	// Floor is the oldest version that a watch may start at. Objects without a record are
	// not newer than Floor.
	Floor listwatch.Version
	// Departures are all departures after Horizon and up to Floor, oldest first. Horizon must not
	// be above Floor. If it is zero, Floor is used.
	Departures []Departure
	Horizon    listwatch.Version
}

// A Departure is a write that [Departs]. Old has the key, the labels and the fields of the object
// before the write.
type Departure struct {
	Version listwatch.Version
	Old     *listwatch.Object
}

// Restore returns a Log with the state and the records of the SavedLog, as if the records had been
// appended. It keeps only one copy of each object, even if the SavedLog has several equal copies.
// It enforces the limit of Retention.Bytes. The next Append enforces the limit of Retention.Age.
//
// o.Revision must be at the newest version of the database. If it is nil, the Revision of the Log
// starts at the newest version of the SavedLog. If records and state contradict each other, the
// error has code [listwatch.Corrupt].
func Restore(o Options, saved SavedLog) (*Log, error) {
	tree := newState().tree
	for _, object := range saved.Objects {
		tree.Put(object)
	}
	if err := undo(tree, saved); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "history", Err: err}
	}
	l := New(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.fill(func(yield func(*listwatch.Object) bool) { tree.Scan(yield) })
	l.records.newest, l.records.floor = saved.Floor, saved.Floor
	l.state.departures.Horizon = cmp.Or(saved.Horizon, saved.Floor)
	for _, d := range saved.Departures {
		l.state.departures.Add(d.Version, d.Old)
	}
	now := time.Now()
	for i, r := range saved.Records {
		if r.At.After(now) {
			r.At = now // either the clock was wrong at the time of the write, or it is wrong now
		}
		l.addRecord(r)
		if i+1 == len(saved.Records) || saved.Records[i+1].Version > r.Version {
			l.state.checkpoint(l.records.next)
		}
	}
	if l.ownsRevision {
		l.revision.Advance(l.records.newest)
	}
	l.trimBytes(now)
	return l, nil
}

// undo reverts the saved records in t, newest first, so that t becomes the state at saved.Floor. In
// each record it replaces the new object with the equal object of the state, so that only one copy
// of each object is in memory.
func undo(t tree, saved SavedLog) error {
	newer := listwatch.Version(0)
	for i := len(saved.Records) - 1; i >= 0; i-- {
		r := &saved.Records[i]
		switch {
		case r.Version <= saved.Floor:
			return fmt.Errorf("a record of version %d is out of order: want a version above the floor %d", r.Version,
				saved.Floor)
		case newer != 0 && r.Version > newer:
			return fmt.Errorf("a record of version %d is out of order: the next record has version %d", r.Version,
				newer)
		}
		newer = r.Version
		if err := undoRecord(t, r); err != nil {
			return err
		}
	}
	var err error
	t.Scan(func(o *listwatch.Object) bool {
		if o.Version > saved.Floor {
			err = fmt.Errorf("%v is at version %d, but no record after version %d has written it", o.Key, o.Version,
				saved.Floor)
		}
		return err == nil
	})
	return err
}

func undoRecord(t tree, r *Record) error {
	if r.Old == nil && r.New == nil {
		return fmt.Errorf("the record of version %d is empty", r.Version)
	}
	object := r.object()
	have, _ := t.Get(object)
	if !sameVersion(have, r.New) {
		return fmt.Errorf("the record of version %d leaves %v at %s, but the state after it has it at %s",
			r.Version, object.Key, versionOf(r.New), versionOf(have))
	}
	r.New = have
	if r.Old != nil {
		t.Put(r.Old)
	} else {
		t.Delete(object)
	}
	return nil
}

func sameVersion(a, b *listwatch.Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version
}

// versionOf returns the version of o as text, or "none" if o is nil.
func versionOf(o *listwatch.Object) string {
	if o == nil {
		return "none"
	}
	return o.Version.String()
}

// Reset replaces the state with the given objects, which may be in any order, and drops all
// records. A store calls it if it may have missed writes. The new state has version v, which must
// not be less than any earlier version or than the version of any object. Open watches expire after
// their remaining events. Departures stay known, except for readers whose version is between the
// two states.
//
// If Options.Revision was set, the caller must advance it to v after Reset returns.
func (l *Log) Reset(objects []*listwatch.Object, v listwatch.Version) {
	l.mu.Lock()
	for l.records.len > 0 {
		l.dropOldest()
	}
	next := newState()
	next.fill(slices.Values(objects))
	l.state.departures.AddReset(l.state.tree, next.tree, departures.Gap{After: l.version(), Until: v})
	next.departures = l.state.departures
	l.caches.initial.retain(next.tree)
	l.state = next
	l.records.newest, l.records.floor = v, v
	for _, f := range l.feeds.bySelection {
		l.feeds.restart(f, v)
		l.waker.add(f.wakeups.take())
	}
	l.mu.Unlock()
	l.waker.start()
	if l.ownsRevision {
		l.revision.Advance(v)
	}
}
