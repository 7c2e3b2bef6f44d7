package reflector

import (
	"fmt"

	"github.com/listwatch/listwatch"
)

// A ResumePoint tracks the version from which a watch can be resumed. The zero ResumePoint has no
// version: the watch begins with the state. It is not safe for concurrent use.
//
// Another program may change several keys of the database in one transaction, so several events can
// have the same version. If the connection is lost between them, a watch from that version would
// not repeat the remaining events. Therefore Version lags behind: it becomes V only after an event
// newer than V or a bookmark at V or later. Events that are repeated after a resume are recognized
// by version and key, and dropped.
type ResumePoint struct {
	// Invariant: group == 0 or Version < group.

	// Version is the version to resume from: every event up to it has been delivered.
	Version listwatch.Version
	// ID is the ID of the state at Version, or empty if it is not known.
	ID string
	// Synced is true once the state is complete. Until then there is no version to resume from.
	Synced bool
	// Confirmed is true if Version comes from the source and not from the caller.
	Confirmed bool
	// Advanced is set by every new event and bookmark. Only the owner of the ResumePoint
	// resets it.
	Advanced bool

	// group is the version of the newest events. It is zero if no more events of that version can
	// follow.
	group listwatch.Version
	// first is the key of the first event of that version. rest holds the keys of its other
	// events.
	first listwatch.Key
	rest  map[listwatch.Key]struct{}
}

// Admit records e and reports whether it is new to the reader. It sets Initial on initial events,
// with one exception: a Deleted event keeps its Initial, because only the source knows whether it
// is part of a difference. It changes the type of the bookmark that ends the initial events to
// Synced, and the type of every other bookmark to Bookmark. For an event that is out of order it
// returns an error of code Corrupt and changes nothing.
func (r *ResumePoint) Admit(e *listwatch.Event) (pass bool, err error) {
	switch {
	case e.Type == listwatch.Bookmark || e.Type == listwatch.Synced:
		return r.bookmark(e), nil
	case !r.Synced:
		e.Initial = e.Type == listwatch.Added || e.Initial && e.Type == listwatch.Deleted
		r.Advanced = true
		return true, nil
	case e.Version > r.Newest():
		if r.group != 0 {
			r.Version = r.group
		}
		r.group, r.first = e.Version, e.Object.Key
		clear(r.rest)
	case e.Version == r.group:
		if _, ok := r.rest[e.Object.Key]; ok || e.Object.Key == r.first {
			return false, nil
		}
		if r.rest == nil {
			r.rest = make(map[listwatch.Key]struct{})
		}
		r.rest[e.Object.Key] = struct{}{}
	default:
		return false, &listwatch.Error{
			Code: listwatch.Corrupt, Op: "read an event",
			Message: fmt.Sprintf("%s %s at version %d was received after version %d",
				e.Type, e.Object.Key, e.Version, r.Newest()),
		}
	}
	r.Advanced, r.Confirmed = true, true
	return true, nil
}

// Newest returns the version of the newest event, or Version if that is newer.
func (r *ResumePoint) Newest() listwatch.Version { return max(r.Version, r.group) }

// bookmark records a bookmark. After a resume, a bookmark may be older than the newest
// event. Such a bookmark is not passed on.
func (r *ResumePoint) bookmark(e *listwatch.Event) (pass bool) {
	if !r.Synced {
		// A server that cannot mark the end of the initial events sends its first bookmark
		// after them, so that bookmark counts as Synced.
		r.Synced, r.Version, r.Advanced, r.Confirmed = true, e.Version, true, true
		e.Type = listwatch.Synced
		return true
	}
	e.Type = listwatch.Bookmark
	if e.Version > r.Version {
		r.Advanced, r.Confirmed = true, true
		r.Version = e.Version
	}
	if e.Version < r.group {
		return false
	}
	r.group = 0
	clear(r.rest)
	return e.Version == r.Version
}
