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
	// first is the key of the first event at the version group. rest holds the keys of the other
	// events.
	first listwatch.Key
	rest  map[listwatch.Key]struct{}
}

// Admit records e and reports whether it is new to the reader. It sets Initial on initial
// events. It changes the type of the bookmark that ends them to Synced, and the type of
// every other bookmark to Bookmark. For an event that is out of order it returns an error
// of code Corrupt and changes nothing.
func (p *ResumePoint) Admit(e *listwatch.Event) (pass bool, err error) {
	switch {
	case e.Type == listwatch.Bookmark || e.Type == listwatch.Synced:
		return p.bookmark(e), nil
	case !p.Synced:
		e.Initial = e.Type == listwatch.Added
		p.Advanced = true
		return true, nil
	case e.Version > p.Newest():
		if p.group != 0 {
			p.Version = p.group
		}
		p.group, p.first = e.Version, e.Object.Key
		clear(p.rest)
	case e.Version == p.group:
		if p.delivered(e.Object.Key) {
			return false, nil
		}
		if p.rest == nil {
			p.rest = make(map[listwatch.Key]struct{})
		}
		p.rest[e.Object.Key] = struct{}{}
	default:
		return false, &listwatch.Error{
			Code: listwatch.Corrupt, Op: "read an event",
			Message: fmt.Sprintf("%s %s at version %d was received after version %d",
				e.Type, e.Object.Key, e.Version, p.Newest()),
		}
	}
	p.Advanced, p.Confirmed = true, true
	return true, nil
}

// Newest returns the version of the newest event, or Version if that is newer.
func (p *ResumePoint) Newest() listwatch.Version { return max(p.Version, p.group) }

func (p *ResumePoint) delivered(key listwatch.Key) bool {
	_, ok := p.rest[key]
	return ok || key == p.first
}

// bookmark records a bookmark. After a resume, a bookmark may be older than the newest
// event. Such a bookmark is not passed on.
func (p *ResumePoint) bookmark(e *listwatch.Event) (pass bool) {
	if !p.Synced {
		// A server that cannot mark the end of the initial events sends its first bookmark
		// after them, so that bookmark counts as Synced.
		p.Synced, p.Version, p.Advanced, p.Confirmed = true, e.Version, true, true
		e.Type = listwatch.Synced
		return true
	}
	e.Type = listwatch.Bookmark
	if e.Version > p.Version {
		p.Advanced, p.Confirmed = true, true
		p.Version = e.Version
	}
	if e.Version < p.group {
		return false
	}
	p.group = 0
	clear(p.rest)
	return e.Version == p.Version
}
