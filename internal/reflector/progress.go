package reflector

import (
	"fmt"

	"github.com/listwatch/listwatch"
)

// A Progress is how far the reader of a watch has come. The zero Progress knows no version. It is not safe for concurrent use.
//
// Events of one version belong together: a foreign writer may have changed several keys in one transaction. A stream can be cut
// between them, and the server would not send the rest to who asks for what follows that version. So the version to resume from
// lags behind: it moves to V only once something newer than V, or a bookmark at V or later, has come. What is sent again after a
// resume is known by version and key, and dropped.
type Progress struct {
	// Invariant: group == 0 or Version < group.
	// Version is where to resume: everything up to it has been delivered.
	Version listwatch.Version
	// Initial is true within the initial events: there is no version to resume from.
	Initial bool
	// Proven is true where Version comes from the source, not from the caller.
	Proven bool
	// Moved is set by everything that comes; only the caller resets it.
	Moved bool

	group listwatch.Version // of the newest events, whose group may not be complete; zero: none
	first listwatch.Key     // the first key of the group that has been delivered
	rest  map[listwatch.Key]struct{}
}

// Admit takes e into account and reports whether the reader is to see it. It marks initial events, and makes the bookmark that ends
// them Synced, and any other a Bookmark. An event out of order is an error of code Corrupt, and changes nothing.
func (p *Progress) Admit(e *listwatch.Event) (pass bool, err error) {
	switch {
	case e.Type == listwatch.Bookmark || e.Type == listwatch.Synced:
		return p.bookmark(e), nil
	case p.Initial:
		e.Initial = e.Type == listwatch.Added
		p.Moved = true
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
			Message: fmt.Sprintf("%s %s at version %d comes after version %d", e.Type, e.Object.Key, e.Version, p.Newest()),
		}
	}
	p.Moved, p.Proven = true, true
	return true, nil
}

// Newest returns the version of the newest event, or Version where that is newer.
func (p *Progress) Newest() listwatch.Version { return max(p.Version, p.group) }

func (p *Progress) delivered(key listwatch.Key) bool {
	_, ok := p.rest[key]
	return ok || key == p.first
}

// bookmark takes a bookmark into account. One before the newest event, as there may be after a resume, is of no use to the reader.
func (p *Progress) bookmark(e *listwatch.Event) (pass bool) {
	if p.Initial {
		// A server that doesn't know how to end the initial events says with its first bookmark, too, that all is there.
		p.Initial, p.Version, p.Moved, p.Proven = false, e.Version, true, true
		e.Type = listwatch.Synced
		return true
	}
	e.Type = listwatch.Bookmark
	if e.Version > p.Version {
		p.Moved, p.Proven = true, true
		p.Version = e.Version
	}
	if e.Version < p.group {
		return false
	}
	p.group = 0
	clear(p.rest)
	return e.Version == p.Version
}
