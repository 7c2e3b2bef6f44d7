package checker

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
)

// A mutation introduces one defect into a history. apply returns false if the history has
// no suitable place.
type mutation struct {
	name      string
	guarantee Guarantee
	apply     func(*mutator) bool
}

// A mutator modifies a history at random places.
type mutator struct {
	rand    *rand.Rand
	history *History
}

// An eventRef refers to an event of a session.
type eventRef struct {
	session *Session
	index   int
}

func (e eventRef) event() *ReceivedEvent { return &e.session.Events[e.index] }
func (e eventRef) remove()               { e.session.Events = slices.Delete(e.session.Events, e.index, e.index+1) }

func (e eventRef) insert(f ReceivedEvent) {
	f.ReceivedAt = e.session.Events[min(e.index, len(e.session.Events)-1)].ReceivedAt
	e.session.Events = slices.Insert(e.session.Events, e.index, f)
}

// afterInitialEvents reports whether e follows the initial events. In a session without a SYNCED
// event, the first change marks the end of the initial events, and only events after that change
// follow them.
func (e eventRef) afterInitialEvents() bool {
	if !e.session.Request.InitialEvents {
		return true
	}
	for i := range e.index {
		if f := e.session.Events[i]; f.Type == Synced || !f.Initial {
			return true
		}
	}
	return false
}

func (e eventRef) hasObject() bool {
	t := e.event().Type
	return t == Added || t == Modified || t == Deleted
}

// isChange reports whether e is a change after the initial events.
func (e eventRef) isChange() bool {
	return e.hasObject() && !e.event().Initial && e.afterInitialEvents()
}

// neighbor returns the event at e.index+offset, and whether it exists and is a change.
func (e eventRef) neighbor(offset int) (n eventRef, ok bool) {
	n = eventRef{e.session, e.index + offset}
	return n, n.index >= 0 && n.index < len(n.session.Events) && n.isChange()
}

// isFirst reports whether only initial events precede e.
func (e eventRef) isFirst() bool {
	for i := range e.index {
		if f := e.session.Events[i]; !f.Initial {
			return false
		}
	}
	return true
}

// endsInitialEvents reports whether the session has a SYNCED event.
func endsInitialEvents(s *Session) bool {
	return slices.ContainsFunc(s.Events, func(f ReceivedEvent) bool { return f.Type == Synced })
}

// pickEvent returns a random event for which fits returns true.
func (m *mutator) pickEvent(fits func(eventRef) bool) (eventRef, bool) {
	var all []eventRef
	for _, s := range m.history.Sessions {
		for i := range s.Events {
			if p := (eventRef{s, i}); fits(p) {
				all = append(all, p)
			}
		}
	}
	if len(all) == 0 {
		return eventRef{}, false
	}
	return all[m.rand.IntN(len(all))], true
}

func pickFrom[T any](m *mutator, all []T, fits func(*T) bool) *T {
	var found []*T
	for i := range all {
		if fits(&all[i]) {
			found = append(found, &all[i])
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[m.rand.IntN(len(found))]
}

// pickSession returns a random session for which fits returns true, and its number.
func (m *mutator) pickSession(fits func(n int, s *Session) bool) (n int, s *Session) {
	var all []int
	for n, s := range m.history.Sessions {
		if fits(n, s) {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return -1, nil
	}
	n = all[m.rand.IntN(len(all))]
	return n, m.history.Sessions[n]
}

// writesAt returns the writes of version v.
func (m *mutator) writesAt(v listwatch.Version) []Write {
	var all []Write
	for _, w := range m.history.Writes {
		if w.Version == v {
			all = append(all, w)
		}
	}
	return all
}

// unusedVersion returns a version after the given version that belongs to no write, or zero.
func (m *mutator) unusedVersion(after listwatch.Version) listwatch.Version {
	for v := after + 1; v < m.history.Writes[len(m.history.Writes)-1].Version; v++ {
		if len(m.writesAt(v)) == 0 {
			return v
		}
	}
	return 0
}

func simSelectionOf(s *Session) simSelection {
	return simSelections[slices.IndexFunc(simSelections,
		func(v simSelection) bool { return v.selection == s.Request.Selection })]
}

// onEvent returns a mutation that applies f to a random event for which fits returns true.
func onEvent(fits func(eventRef) bool, f func(*mutator, eventRef) bool) func(*mutator) bool {
	return func(m *mutator) bool {
		p, ok := m.pickEvent(fits)
		return ok && f(m, p)
	}
}

// editEvent is like onEvent for an f that always succeeds.
func editEvent(fits func(eventRef) bool, f func(eventRef)) func(*mutator) bool {
	return onEvent(fits, func(_ *mutator, p eventRef) bool { f(p); return true })
}

func isInitial(p eventRef) bool {
	return p.hasObject() && p.event().Initial && p.event().Type != Deleted && p.session.Request.InitialEvents &&
		endsInitialEvents(p.session)
}

// isGone reports whether p is a DELETED event of a difference.
func isGone(p eventRef) bool {
	return p.hasObject() && p.event().Initial && p.event().Type == Deleted && endsInitialEvents(p.session)
}

// isFollowedByChange reports whether a change follows p in its session.
func isFollowedByChange(p eventRef) bool {
	for i := p.index + 1; i < len(p.session.Events); i++ {
		if (eventRef{p.session, i}).isChange() {
			return true
		}
	}
	return false
}

// continuesVersion reports whether p has the same version as the change before it.
func continuesVersion(p eventRef) bool {
	n, ok := p.neighbor(-1)
	return ok && n.event().Version == p.event().Version
}

// isFirstAfterResume reports whether p is the first event of a session that requested a
// version.
func isFirstAfterResume(p eventRef) bool {
	return p.session.Request.Version != 0 && !p.session.Request.InitialEvents && p.isChange() && p.isFirst()
}

// notCompacted reports whether the history after v was still available at time t.
func (m *mutator) notCompacted(v listwatch.Version, t time.Duration) bool {
	return !slices.ContainsFunc(m.history.Compactions, func(f Compaction) bool { return f.High > v && f.Began <= t })
}
