package history

import (
	"sort"

	"github.com/tidwall/btree"

	"github.com/listwatch/listwatch"
)

// A tree is the objects of a collection by key. One that was handed out is never changed: the log copies on write.
type tree = btree.BTreeG[*listwatch.Object]

func byKey(a, b *listwatch.Object) bool { return a.Key.Compare(b.Key) < 0 }

// checkpointEvery is how many records lie between two checkpoints. To keep a snapshot of the state with each record would make
// every write copy a path of the tree, some 2 KiB; with one snapshot in 64 the state at any version is at most 63 changes away from
// one, some tens of microseconds, and only exact lists and continued pages ask for it.
const checkpointEvery = 64

// A state is the objects now, and enough to tell how they were at any version of the window. Guarded by Log.mu.
type state struct {
	tree *tree
	// snap is a copy of tree that readers have; nil: there is none since the last change.
	snap *tree
	// base is the state before the oldest record in the window.
	base *tree
	// checkpoints are oldest first; all are within the window.
	checkpoints []checkpoint
	since       int // records after the last checkpoint
}

// A checkpoint is the state before the record of a number.
type checkpoint struct {
	number uint64
	tree   *tree
}

func newState() state {
	t := btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true, Degree: 16})
	return state{tree: t, base: t.Copy()}
}

func (s *state) apply(r *record) {
	s.snap = nil
	s.since++
	applyTo(s.tree, r)
}

func applyTo(t *tree, r *record) {
	if r.new != nil {
		t.Set(r.new)
	} else {
		t.Delete(r.old)
	}
}

// snapshot returns the state now.
func (s *state) snapshot() *tree {
	if s.snap == nil {
		s.snap = s.tree.Copy()
	}
	return s.snap
}

// checkpoint keeps the state now, before the record number next, if it is time.
func (s *state) checkpoint(next uint64) {
	if s.since >= checkpointEvery {
		s.checkpoints = append(s.checkpoints, checkpoint{next, s.snapshot()})
		s.since = 0
	}
}

// drop moves base over r, which leaves the window; next is the number of the record that is the oldest then.
func (s *state) drop(r *record, next uint64) {
	if len(s.checkpoints) > 0 && s.checkpoints[0].number == next {
		// This tree shares more with the state now than a base that was brought there change by change.
		s.base = s.checkpoints[0].tree.Copy()
		s.checkpoints[0].tree = nil
		s.checkpoints = s.checkpoints[1:]
		return
	}
	applyTo(s.base, r)
}

// stateAt returns the state as it was at v, which is floor or later. l.mu is held.
func (l *Log) stateAt(v listwatch.Version) *tree {
	if v >= l.last {
		return l.state.snapshot()
	}
	first, end := l.records.numberOf0(), l.records.after(v)
	from, base := first, l.state.base
	if i := sort.Search(len(l.state.checkpoints), func(i int) bool { return l.state.checkpoints[i].number > end }); i > 0 {
		from, base = l.state.checkpoints[i-1].number, l.state.checkpoints[i-1].tree
	}
	t := base.Copy()
	for ; from < end; from++ {
		applyTo(t, l.records.at(int(from-first)))
	}
	return t
}
