package history

import (
	"iter"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
	"github.com/listwatch/listwatch/internal/ordered"
	"github.com/listwatch/listwatch/internal/sharedmaps"
)

// A tree holds the objects of a collection by key. A tree that readers use never changes,
// because the log copies it before the next write.
type tree = ordered.Set[*listwatch.Object]

//go:noinline // see ordered.New
func newTree() tree {
	return ordered.New(16, func(a, b *listwatch.Object) bool { return a.Key.Compare(b.Key) < 0 })
}

// checkpointInterval is the number of records between two checkpoints. A checkpoint at
// every record would make each write copy a path of the tree, about 2 KiB. With one
// checkpoint per 64 records, any retained state is at most 63 writes away from a
// checkpoint. Applying these writes takes tens of microseconds, and is only necessary for
// lists at an exact version and continued lists.
const checkpointInterval = 64

// A state holds the current objects, and the data to rebuild the objects at any retained
// version. It is guarded by Log.mu.
type state struct {
	tree tree
	// snap is a copy of tree that readers share. It is nil if no reader has requested it
	// since the last write.
	snap tree
	// base is the state before the oldest retained record.
	base tree
	// checkpoints are in order. Each one is the state before a retained record.
	checkpoints     []checkpoint
	sinceCheckpoint int   // records applied after the last checkpoint
	bytes           int64 // the bytes of the objects in tree
	shared          *sharedmaps.Set
	departures      departures.List
}

// A checkpoint is the state before the record with the given number.
type checkpoint struct {
	number uint64
	tree   tree
}

func newState() state {
	t := newTree()
	return state{tree: t, base: t.Copy(), shared: sharedmaps.New()}
}

// apply applies r. It replaces the objects of r by those that the state has or will have.
func (s *state) apply(r *record) {
	s.snap = nil
	if r.Old != nil {
		if have, _ := s.tree.Get(r.Old); sameVersion(have, r.Old) {
			r.Old = have
		}
	}
	r.New = s.shared.Exchange(r.Old, r.New)
	s.sinceCheckpoint++
	s.bytes += dataBytes(r.New) - dataBytes(r.Old)
	applyTo(s.tree, r)
	s.departures.AddWrite(r.Version, r.Old, r.New)
}

const (
	// objectBytes estimates the memory of an object, of its name and of its place in the tree, in
	// addition to its maps and its JSON. The allocation of the JSON has up to an eighth more bytes.
	objectBytes  = 160
	sizeClassGap = 16
)

// memory estimates the memory of the objects in tree.
func (s *state) memory() int64 {
	return s.bytes + s.bytes/sizeClassGap + int64(s.tree.Len())*objectBytes + s.shared.Bytes
}

// fill adds objects to a new state, in which nothing precedes them.
func (s *state) fill(objects iter.Seq[*listwatch.Object]) {
	for o := range objects {
		o = s.shared.Exchange(nil, o)
		s.tree.Put(o)
		s.bytes += dataBytes(o)
	}
	s.base = s.tree.Copy()
}

// dataBytes returns the length of the JSON of o, which may be nil.
func dataBytes(o *listwatch.Object) int64 {
	if o == nil {
		return 0
	}
	return int64(len(o.Data))
}

func applyTo(t tree, r *record) {
	if r.New != nil {
		t.Put(r.New)
	} else {
		t.Delete(r.Old)
	}
}

// snapshot returns the current state.
func (s *state) snapshot() tree {
	if s.snap == nil {
		s.snap = s.tree.Copy()
	}
	return s.snap
}

// checkpoint stores a checkpoint of the current state, if a checkpoint is due. next is the number
// of the record that follows the state.
func (s *state) checkpoint(next uint64) {
	if s.sinceCheckpoint >= checkpointInterval {
		s.checkpoints = append(s.checkpoints, checkpoint{next, s.snapshot()})
		s.sinceCheckpoint = 0
	}
}

// drop advances base past r, the oldest record, which is being dropped. first is the number of the
// record after r.
func (s *state) drop(r *record, first uint64) {
	if len(s.checkpoints) > 0 && s.checkpoints[0].number == first {
		// Use the tree of the checkpoint, because it shares more nodes with the current
		// state than base does.
		s.base = s.checkpoints[0].tree.Copy()
		s.checkpoints[0].tree = nil
		s.checkpoints = s.checkpoints[1:]
		return
	}
	applyTo(s.base, r)
}
