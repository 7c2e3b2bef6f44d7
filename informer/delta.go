package informer

import (
	"fmt"
	"iter"

	"github.com/listwatch/listwatch"
)

// A DeltaType is the kind of a [Delta].
type DeltaType uint8

// The types of deltas.
const (
	// DeltaAdded means that the object is new: a consumer that handled all earlier deltas
	// does not know it.
	DeltaAdded DeltaType = iota + 1
	// DeltaUpdated means that a known object has changed.
	DeltaUpdated
	// DeltaDeleted means that the object was deleted or no longer matches the query.
	DeltaDeleted
	// DeltaReplaced means that a list contains the object. For the consumer it is an
	// addition if the object is unknown, an update if it is known at another version, and
	// no change if it is known at this version.
	DeltaReplaced
	// DeltaSync means that nothing has changed; Sync or Resync requested the delta.
	DeltaSync
)

var deltaNames = [...]string{
	DeltaAdded: "Added", DeltaUpdated: "Updated", DeltaDeleted: "Deleted", DeltaReplaced: "Replaced", DeltaSync: "Sync",
}

// String returns the name of d without its prefix, such as "Added".
func (d DeltaType) String() string {
	if int(d) < len(deltaNames) && deltaNames[d] != "" {
		return deltaNames[d]
	}
	return fmt.Sprintf("DeltaType(%d)", d)
}

// A Delta is one change of one object.
type Delta[T any] struct {
	Type DeltaType
	// Item is the state after the change. For DeltaDeleted it is the last state, at the
	// version of the deletion.
	Item *Item[T]
	// FinalStateUnknown is true for a DeltaDeleted that was inferred from a list. Then Item
	// is the last state that was received, at its own version.
	FinalStateUnknown bool
	// Initial is true if the key belongs to the first list and has not been popped since that
	// list.
	Initial bool
}

// Deltas are the pending changes of one key, oldest first. There are at most two: a
// deletion and the state that follows it.
type Deltas[T any] struct {
	// Key is the key of the object.
	Key listwatch.Key

	n int
	d [2]Delta[T]
}

// Len returns the number of deltas, 1 or 2.
func (d Deltas[T]) Len() int { return d.n }

// At returns the delta at index i. The oldest delta has index 0. At panics if i is not less
// than Len.
func (d Deltas[T]) At(i int) Delta[T] { return d.d[:d.n][i] }

// All returns an iterator over the deltas, oldest first.
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
