package harness

import (
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
)

// Diff tells where a watcher saw something else than it should; nil: nowhere.
func Diff(want, got []Seen) error {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Errorf("event %d is %s at %d, want %s at %d", i, got[i].Line, got[i].Version, want[i].Line, want[i].Version)
		}
	}
	if len(want) != len(got) {
		return fmt.Errorf("got %d events, want %d", len(got), len(want))
	}
	return nil
}

// EventsAfter returns what a watcher of everything sees of history from v on. The writes must have been made one after another.
func (d *Collection) EventsAfter(v listwatch.Version) []Seen {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	state := map[string]map[string]string{}
	all := Project(d.History, state, func(map[string]string) bool { return true })
	return slices.DeleteFunc(all, func(s Seen) bool { return s.Version <= v })
}

// A Model replays a history. Its writes must have been made one after another.
type Model struct {
	History []Write
	State   map[string]listwatch.Version
}

// Advance makes state what it was at v, which must not be older than before.
func (m *Model) Advance(v listwatch.Version) {
	for len(m.History) > 0 && m.History[0].Version <= v {
		w := m.History[0]
		m.History = m.History[1:]
		if m.State[w.Name] = w.Version; w.Labels == nil {
			delete(m.State, w.Name)
		}
	}
}

// StateAt returns the versions of the objects that there were at v.
func (d *Collection) StateAt(v listwatch.Version) map[string]listwatch.Version {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	m := &Model{History: d.History, State: map[string]listwatch.Version{}}
	m.Advance(v)
	return m.State
}

// A Seen is an event, shortly.
type Seen struct {
	Line    string
	Version listwatch.Version
}

// Project returns what a watcher of the objects that match sees of history, and moves labels, the state before it, on.
func Project(history []Write, labels map[string]map[string]string, matches func(map[string]string) bool) (events []Seen) {
	for _, w := range history {
		old, existed := labels[w.Name]
		before, after := existed && matches(old), w.Labels != nil && matches(w.Labels)
		switch {
		case before && after:
			events = append(events, Seen{"MODIFIED " + w.Name, w.Version})
		case before:
			events = append(events, Seen{"DELETED " + w.Name, w.Version})
		case after:
			events = append(events, Seen{"ADDED " + w.Name, w.Version})
		}
		if labels[w.Name] = w.Labels; w.Labels == nil {
			delete(labels, w.Name)
		}
	}
	return events
}
