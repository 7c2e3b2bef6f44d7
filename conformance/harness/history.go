package harness

import (
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
)

// Diff returns an error that describes the first difference between want and got, or nil if
// they are equal.
func Diff(want, got []SeenEvent) error {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Errorf("event %d: got %s at version %d, want %s at version %d", i, got[i].Line, got[i].Version,
				want[i].Line, want[i].Version)
		}
	}
	if len(want) != len(got) {
		return fmt.Errorf("got %d events, want %d", len(got), len(want))
	}
	return nil
}

// EventsAfter returns the events that a watch without a selector receives for the history
// after v. It requires that the writes were made one after another.
func (c *Collection) EventsAfter(v listwatch.Version) []SeenEvent {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	state := map[string]map[string]string{}
	all := Project(c.History, state, func(map[string]string) bool { return true })
	return slices.DeleteFunc(all, func(s SeenEvent) bool { return s.Version <= v })
}

// A Model replays a history to compute the state at a version. The writes must have been
// made one after another.
type Model struct {
	History []Write
	State   map[string]listwatch.Version
}

// Advance updates State to version v. Versions must not decrease between calls.
func (m *Model) Advance(v listwatch.Version) {
	for len(m.History) > 0 && m.History[0].Version <= v {
		w := m.History[0]
		m.History = m.History[1:]
		if m.State[w.Name] = w.Version; w.Labels == nil {
			delete(m.State, w.Name)
		}
	}
}

// StateAt returns the objects that existed at version v, with their versions.
func (c *Collection) StateAt(v listwatch.Version) map[string]listwatch.Version {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	m := &Model{History: c.History, State: map[string]listwatch.Version{}}
	m.Advance(v)
	return m.State
}

// SeenEvent is a short form of an event that a watcher received.
type SeenEvent struct {
	Line    string
	Version listwatch.Version
}

// Project returns the events that a watch of the matching objects receives for the writes in
// history. labels holds the labels of all objects before the first write; Project updates it.
func Project(
	history []Write, labels map[string]map[string]string, matches func(map[string]string) bool,
) (events []SeenEvent) {
	for _, w := range history {
		old, existed := labels[w.Name]
		before, after := existed && matches(old), w.Labels != nil && matches(w.Labels)
		switch {
		case before && after:
			events = append(events, SeenEvent{"MODIFIED " + w.Name, w.Version})
		case before:
			events = append(events, SeenEvent{"DELETED " + w.Name, w.Version})
		case after:
			events = append(events, SeenEvent{"ADDED " + w.Name, w.Version})
		}
		if labels[w.Name] = w.Labels; w.Labels == nil {
			delete(labels, w.Name)
		}
	}
	return events
}
