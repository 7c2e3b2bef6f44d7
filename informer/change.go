package informer

import "github.com/listwatch/listwatch"

// A ChangeType is the kind of a [Change], as one handler sees it.
type ChangeType uint8

// The types of a [Change].
const (
	// ChangeAdded means that the handler did not know the object.
	ChangeAdded ChangeType = iota + 1
	// ChangeUpdated means that the handler knew another state of the object, or, at a
	// resync, the same state.
	ChangeUpdated
	// ChangeDeleted means that the object was deleted or no longer matches the query.
	ChangeDeleted
)

var changeNames = [...]string{ChangeAdded: "added", ChangeUpdated: "updated", ChangeDeleted: "deleted"}

// String returns "added", "updated" or "deleted".
func (c ChangeType) String() string {
	if int(c) < len(changeNames) && changeNames[c] != "" {
		return changeNames[c]
	}
	return "unknown"
}

// A Change is the difference between the last state of an object that a handler has seen
// and the state that it sees now.
type Change[T any] struct {
	// Type is the kind of the change, Key is the key of the object, and Version is the
	// version at which the object reached this state.
	Type    ChangeType
	Key     listwatch.Key
	Version listwatch.Version
	// Old is the state that the handler saw last, and New is the current state. For
	// ChangeAdded, Old is the zero T. For ChangeDeleted, New is the last state of the
	// object.
	Old, New T
	// Initial is true if the object belongs to the state that the handler started with.
	Initial bool
	// Resync is true if nothing has changed and the call is a periodic resync.
	Resync bool
	// FinalStateUnknown is true if the object was deleted while the informer was
	// disconnected and could not resume. Then New is the last state that was received,
	// which may not be the final one, and Version is the version of that state.
	FinalStateUnknown bool
}
