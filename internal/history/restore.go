package history

import (
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
)

// A Past is what a collection has behind it when its Log begins: the state, and the writes that led there as far as they are still known.
// The zero Past is an empty collection that begins at version zero.
type SavedLog struct {
	// Objects are the state after the last of Records, in any order.
	Objects []*listwatch.Object
	// Records are the writes after Floor, none missing: oldest first, those of one version in key order. The Log takes the slice over.
	Records []Record
	// Floor is the oldest version that a watch may start from: every object that none of Records touched is of it or older.
	Floor listwatch.Version
}

// A Record is a Change of a Past.
type Record struct {
	Change
	// At is when it was written; from then on its age counts, from the restoration at the latest.
	At time.Time
}

// Restore returns a Log that goes on where p ends: its state can be listed and its records can be watched from, as if they had been
// appended. Of records and state one copy of each object is kept. The window's bytes are enforced at once; its age, as ever, with the next
// Append. o.Head must be at the newest version of the database by then; a Head of the Log's own begins at the newest of p.
//
// A Past that contradicts itself is an error of code [listwatch.Corrupt].
func Restore(o Options, p SavedLog) (*Log, error) {
	now := newState().tree
	for _, object := range p.Objects {
		now.Set(object)
	}
	base, err := undo(now, p)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Message: "history", Err: err}
	}
	l := New(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state{tree: base.Copy(), base: base}
	l.last, l.records.floor = p.Floor, p.Floor
	today := time.Now()
	for i, past := range p.Records {
		at := past.At
		if at.After(today) {
			at = today // the clock was wrong then, or is now
		}
		r := newRecord(past.Change, at, l.budget)
		l.state.apply(r)
		l.records.push(r)
		l.last = r.version
		if i+1 == len(p.Records) || p.Records[i+1].Version > r.version {
			l.state.checkpoint(l.records.next)
		}
	}
	if l.ownsHead {
		l.head.Advance(l.last)
	}
	l.trimBytes()
	return l, nil
}

// undo takes the records of p back from t, the newest first, and returns the state at p.Floor. Each record gets the objects of the state
// around it in place of its own, so that they are in memory once.
func undo(t *tree, p SavedLog) (*tree, error) {
	after := listwatch.Version(0)
	for i := len(p.Records) - 1; i >= 0; i-- {
		r := &p.Records[i]
		if r.Version <= p.Floor || after != 0 && r.Version > after {
			return nil, fmt.Errorf("a record of version %d is out of order: it is above %d and below %d", r.Version, p.Floor, after)
		}
		after = r.Version
		if err := undoOne(t, &r.Change); err != nil {
			return nil, err
		}
	}
	var err error
	t.Scan(func(o *listwatch.Object) bool {
		if o.Version > p.Floor {
			err = fmt.Errorf("no record says how %v came to version %d, after %d", o.Key, o.Version, p.Floor)
		}
		return err == nil
	})
	return t, err
}

func undoOne(t *tree, c *Change) error {
	if c.Old == nil && c.New == nil {
		return fmt.Errorf("the record of version %d is empty", c.Version)
	}
	probe := c.New
	if probe == nil {
		probe = c.Old
	}
	have, _ := t.Get(probe)
	if !sameVersion(have, c.New) {
		return fmt.Errorf("the record of version %d leaves %v at %s, but the state after it has it at %s", c.Version, probe.Key, versionOf(c.New), versionOf(have))
	}
	c.New = have
	if c.Old != nil {
		t.Set(c.Old)
	} else {
		t.Delete(probe)
	}
	return nil
}

func sameVersion(a, b *listwatch.Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version
}

func versionOf(o *listwatch.Object) string {
	if o == nil {
		return "none"
	}
	return o.Version.String()
}
