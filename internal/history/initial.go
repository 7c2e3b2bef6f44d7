package history

import (
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// initial is embedded in the stages that return initial events.
type initial struct{}

func (initial) progress() listwatch.Progress { return listwatch.Progress{More: true} }
func (initial) arm(func()) bool              { return false }

// A snapshot is the stage that returns the objects of a state in key order. If since is not zero,
// it returns only those that were written after since, and the stage departed follows.
type snapshot struct {
	initial
	feed *feed
	tree tree
	at   listwatch.Version // the version of the state

	since      listwatch.Version
	departures [][]departures.Departure // those after since

	next stage
	last listwatch.Key // the key of the last object visited
}

// snapshot returns the stage for the initial events of f from t, the state at the given version. It
// has no next stage yet. f.log.mu must be held.
func (f *feed) snapshot(t tree, at listwatch.Version, s *start) *snapshot {
	shot := &snapshot{feed: f, tree: t, at: at, since: f.log.knownSince(s, at)}
	if shot.since != 0 {
		shot.departures = f.log.state.departures.After(shot.since)
	}
	return shot
}

func (s *snapshot) read(b batch) (batch, stage, error) {
	selected, from := &s.feed.selection, b.n
	done := true
	var visited *listwatch.Object
	selected.scan(s.tree, s.last, func(o *listwatch.Object) bool {
		isSelected := o.Version > s.since && selected.Matches(o)
		if done = b.visits > 0 && (!isSelected || !b.isFull()); !done {
			return false
		}
		b.visits--
		if visited = o; isSelected {
			shown := selected.Projection.Reduce(o)
			e := listwatch.Event{Type: listwatch.Added, Initial: true, Object: shown, Version: o.Version}
			b.put(e, frames.Ref{})
		}
		return true
	})
	if b.refs != nil && selected.Projection.Empty() {
		s.feed.log.initialRefs(b.events[from:b.n], b.refs[from:b.n])
	}
	switch {
	case !done && visited != nil:
		s.last = visited.Key
		return b, s, nil
	case !done:
		return b, s, nil
	case s.since != 0:
		return b, &departed{feed: s.feed, tree: s.tree, at: s.at, departures: s.departures, next: s.next}, nil
	}
	return b, s.next, nil
}

// initialRefs sets refs to the frames of events, which must be initial events.
func (l *Log) initialRefs(events []listwatch.Event, refs []frames.Ref) {
	if l.caches.initial.lookup(events, refs) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.caches.initial.add(l.state.tree, events, refs)
}

// synced is the stage that returns the bookmark after the initial events.
type synced struct {
	initial
	of    listwatch.Description
	parts []listwatch.Description // those of a union; see [listwatch.Event.Parts]
	at    listwatch.State
	since listwatch.Version
	next  stage
}

func (s *synced) read(b batch) (batch, stage, error) {
	if b.isFull() {
		return b, s, nil
	}
	b.put(listwatch.NewSynced(s.of, s.at, s.since, s.parts...), frames.Ref{})
	return b, s.next, nil
}

// given is the stage that returns the initial events of a reader whose state does not come from the
// log.
type given struct {
	initial
	events []listwatch.Event
	next   stage
}

// given returns the stage that returns objects, which it sorts, as the initial events of f.
func (f *feed) given(q *listwatch.Query, objects []*listwatch.Object, next stage) *given {
	slices.SortFunc(objects, func(a, b *listwatch.Object) int { return a.Key.Compare(b.Key) })
	g := &given{events: make([]listwatch.Event, 0, len(objects)), next: next}
	for _, o := range objects {
		e := listwatch.Event{Type: listwatch.Added, Initial: true, Version: o.Version}
		e.Object = f.selection.Projection.Reduce(o)
		g.events = append(g.events, e)
	}
	if q.Bookmarks {
		g.next = &synced{of: f.log.description, at: listwatch.State{Version: q.Version, ID: f.stateID}, next: next}
	}
	return g
}

func (g *given) read(b batch) (batch, stage, error) {
	for !b.isFull() && len(g.events) > 0 {
		b.put(g.events[0], frames.Ref{})
		g.events = g.events[1:]
	}
	if len(g.events) > 0 {
		return b, g, nil
	}
	return b, g.next, nil
}
