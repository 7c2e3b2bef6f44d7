package informer

import "github.com/listwatch/listwatch"

// A ChangeType says what became of an object, for one handler.
type ChangeType uint8

// The types of a [Change].
const (
	// Appeared: the handler did not know the object.
	ChangeAdded ChangeType = iota + 1
	// Changed: the handler knew another state of it, or the same one, at a resync.
	ChangeUpdated
	// Disappeared: the object was deleted, or left the selection.
	ChangeDeleted
)

var changeNames = [...]string{ChangeAdded: "appeared", ChangeUpdated: "changed", ChangeDeleted: "disappeared"}

// String returns a word.
func (t ChangeType) String() string {
	if int(t) < len(changeNames) && changeNames[t] != "" {
		return changeNames[t]
	}
	return "unknown"
}

// A Change is what happened to one object between two looks of a handler: the state it saw last, and the one that is now.
type Change[T any] struct {
	// Type is what happened, to which object, and the version at which it did.
	Type    ChangeType
	Key     listwatch.Key
	Version listwatch.Version
	// Old is the state that the handler saw last, New the one that is now. Old is the zero T where the object appeared; New, where it
	// disappeared, is its last state.
	Old, New T
	// Initial is true for an object of the state that the handler began with.
	Initial bool
	// Resync is true where nothing happened, and the handler asked to be called from time to time.
	Resync bool
	// FinalStateUnknown is true where the object disappeared while the informer was cut off from the history: New is the last state that
	// was seen, not that of the deletion, and Version is the version of that state.
	FinalStateUnknown bool
}

// A Deleted is the last that is known of an object that is gone. It is the same type whether the deletion was seen or inferred.
type Deleted[T any] struct {
	// Key names the object, Version is that of the deletion.
	Key     listwatch.Key
	Version listwatch.Version
	// Value is its last state.
	Value T
	// FinalStateUnknown is as in [Change].
	FinalStateUnknown bool
}

// A Handler is called for each change. Each function may be nil. One goroutine calls them, one call at a time; values are shared with the
// local store and must not be modified. They may use the informer as they like, but that they must not wait for their own sync. A panic of
// theirs ends the program, for what it left undone is told by nobody again.
type Handler[T any] struct {
	// OnAdd is called for an object that the handler did not know; initial: it is of the state that the handler began with.
	OnAdd func(value T, initial bool)
	// OnUpdate is called with the state that the handler saw last and the one that is now; at a resync they are the same.
	OnUpdate func(old, value T)
	// OnDelete is called for an object that is gone.
	OnDelete func(d Deleted[T])
}

func (h *Handler[T]) call(c Change[T]) {
	switch {
	case c.Type == ChangeAdded && h.OnAdd != nil:
		h.OnAdd(c.New, c.Initial)
	case c.Type == ChangeUpdated && h.OnUpdate != nil:
		h.OnUpdate(c.Old, c.New)
	case c.Type == ChangeDeleted && h.OnDelete != nil:
		h.OnDelete(Deleted[T]{Key: c.Key, Version: c.Version, Value: c.New, FinalStateUnknown: c.FinalStateUnknown})
	}
}
