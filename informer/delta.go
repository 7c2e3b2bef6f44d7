package informer

import (
	"fmt"
	"iter"

	"github.com/listwatch/listwatch"
)

// A DeltaType says what a [Delta] is.
type DeltaType uint8

// The types of deltas.
const (
	// DeltaAdded: the object is new; nobody who handled all deltas so far knows it.
	DeltaAdded DeltaType = iota + 1
	// DeltaUpdated: the object is known and has changed.
	DeltaUpdated
	// DeltaDeleted: the object is gone, or has left the selection.
	DeltaDeleted
	// DeltaReplaced: a list shows the object. That is an add where it is unknown, an update where it is known at another version, and
	// nothing new where it is known at this one.
	DeltaReplaced
	// DeltaSync: nothing has changed; the object is told again because somebody asked for it.
	DeltaSync
)

var deltaNames = [...]string{
	DeltaAdded: "Added", DeltaUpdated: "Updated", DeltaDeleted: "Deleted", DeltaReplaced: "Replaced", DeltaSync: "Sync",
}

// String returns the name of t.
func (t DeltaType) String() string {
	if int(t) < len(deltaNames) && deltaNames[t] != "" {
		return deltaNames[t]
	}
	return fmt.Sprintf("DeltaType(%d)", t)
}

// A Delta is one change of one object.
type Delta[T any] struct {
	Type DeltaType
	// Item is the state after the change; for DeltaDeleted the last state, at the version of the deletion.
	Item *Item[T]
	// FinalStateUnknown, of a DeltaDeleted: the deletion itself was missed, and Item is the last state that was seen, at its own version.
	FinalStateUnknown bool
	// Initial: the key belongs to the first list, and is popped for the first time since.
	Initial bool
}

// Deltas are those of one key, oldest first. There are never more than two: a deletion, and what came after it.
type Deltas[T any] struct {
	// Key is the object's.
	Key listwatch.Key

	n int
	d [2]Delta[T]
}

// Len returns how many deltas there are: 1 or 2.
func (d Deltas[T]) Len() int { return d.n }

// At returns the i-th delta, the oldest being 0; it panics where i is not below Len.
func (d Deltas[T]) At(i int) Delta[T] { return d.d[:d.n][i] }

// All returns the deltas, oldest first.
func (d Deltas[T]) All() iter.Seq[Delta[T]] {
	return func(yield func(Delta[T]) bool) {
		for i := range d.n {
			if !yield(d.d[i]) {
				return
			}
		}
	}
}

func (d *Deltas[T]) add(delta Delta[T]) {
	d.d[d.n] = delta
	d.n++
}
