package checker

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
)

// A mutation makes one thing wrong in a history. apply reports false where it can't.
type mutation struct {
	name  string
	rule  Guarantee
	apply func(*mutator) bool
}

// A mutator picks places at random.
type mutator struct {
	rand *rand.Rand
	h    *History
}

// A spot is a frame of a session.
type spot struct {
	s *Session
	i int
}

func (p spot) frame() *ReceivedEvent { return &p.s.Events[p.i] }
func (p spot) remove()               { p.s.Events = slices.Delete(p.s.Events, p.i, p.i+1) }
func (p spot) insert(f ReceivedEvent) {
	f.ReceivedAt = p.s.Events[min(p.i, len(p.s.Events)-1)].ReceivedAt
	p.s.Events = slices.Insert(p.s.Events, p.i, f)
}

// following reports whether the frame is past the initial events, and not the first change after unmarked ones.
func (p spot) following() bool {
	if !p.s.Request.InitialEvents {
		return true
	}
	for i := range p.i {
		if f := p.s.Events[i]; f.Type == Synced || !f.Initial {
			return true
		}
	}
	return false
}

func (p spot) isEvent() bool { t := p.frame().Type; return t == Added || t == Modified || t == Deleted }

// change reports whether the frame is a change.
func (p spot) change() bool { return p.isEvent() && !p.frame().Initial && p.following() }

// before and after return the neighbours of a change that are changes too; ok is false where there are none.
func (p spot) near(by int) (n spot, ok bool) {
	n = spot{p.s, p.i + by}
	return n, n.i >= 0 && n.i < len(n.s.Events) && n.change()
}

// first reports whether no change or bookmark comes before it.
func (p spot) first() bool {
	for i := range p.i {
		if f := p.s.Events[i]; !f.Initial {
			return false
		}
	}
	return true
}

// synced reports whether the initial events of the session have come to a marked end.
func synced(s *Session) bool {
	return slices.ContainsFunc(s.Events, func(f ReceivedEvent) bool { return f.Type == Synced })
}

// pick returns a frame that fits.
func (m *mutator) pick(fits func(spot) bool) (spot, bool) {
	var all []spot
	for _, s := range m.h.Sessions {
		for i := range s.Events {
			if p := (spot{s, i}); fits(p) {
				all = append(all, p)
			}
		}
	}
	if len(all) == 0 {
		return spot{}, false
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

// session returns a session that fits, and its number.
func (m *mutator) session(fits func(n int, s *Session) bool) (n int, s *Session) {
	var all []int
	for n, s := range m.h.Sessions {
		if fits(n, s) {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return -1, nil
	}
	n = all[m.rand.IntN(len(all))]
	return n, m.h.Sessions[n]
}

// written returns the writes of version v.
func (m *mutator) written(v listwatch.Version) []Write {
	var all []Write
	for _, w := range m.h.Writes {
		if w.Version == v {
			all = append(all, w)
		}
	}
	return all
}

// unwritten returns a version between those of writes, or zero.
func (m *mutator) unwritten(after listwatch.Version) listwatch.Version {
	for v := after + 1; v < m.h.Writes[len(m.h.Writes)-1].Version; v++ {
		if len(m.written(v)) == 0 {
			return v
		}
	}
	return 0
}

// views returns the view of s.
func viewOf(s *Session) view {
	return views[slices.IndexFunc(views, func(v view) bool { return v.selection == s.Request.Selection })]
}

// at does f at a frame that fits.
func at(fits func(spot) bool, f func(*mutator, spot) bool) func(*mutator) bool {
	return func(m *mutator) bool {
		p, ok := m.pick(fits)
		return ok && f(m, p)
	}
}

// edit does f at a frame that fits.
func edit(fits func(spot) bool, f func(spot)) func(*mutator) bool {
	return at(fits, func(_ *mutator, p spot) bool { f(p); return true })
}

func isInitial(p spot) bool {
	return p.isEvent() && p.frame().Initial && p.s.Request.InitialEvents && synced(p.s)
}

// followed reports whether a change comes after it in the session.
func followed(p spot) bool {
	for i := p.i + 1; i < len(p.s.Events); i++ {
		if (spot{p.s, i}).change() {
			return true
		}
	}
	return false
}

// torn reports whether the change before it has the same version.
func torn(p spot) bool {
	n, ok := p.near(-1)
	return ok && n.frame().Version == p.frame().Version
}

// opens reports whether the frame is the first of a session that named a version.
func opens(p spot) bool {
	return p.s.Request.Version != 0 && !p.s.Request.InitialEvents && p.change() && p.first()
}

// noFloorSince reports whether nothing was compacted that is newer than v by the time t.
func (m *mutator) noFloorSince(v listwatch.Version, t time.Duration) bool {
	return !slices.ContainsFunc(m.h.Compactions, func(f Compaction) bool { return f.High > v && f.Began <= t })
}
