package harness

import (
	"fmt"
	"slices"
	"strings"

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

// CheckConflated returns an error unless got are the events that a conflated watch without a
// selector may receive for the history after start, once it has read everything: all events in
// order, except for MODIFIED events of objects that have a later event.
func (c *Collection) CheckConflated(start listwatch.Version, got []SeenEvent) error {
	stale := map[string]SeenEvent{} // the skipped events whose objects have no later event
	for _, want := range c.EventsAfter(start) {
		kind, name, _ := strings.Cut(want.Line, " ")
		switch {
		case len(got) > 0 && got[0] == want:
			got = got[1:]
			delete(stale, name)
		case kind == "MODIFIED":
			stale[name] = want
		default:
			return fmt.Errorf("missed %v; the next event is %v", want, got[:min(len(got), 1)])
		}
	}
	for _, s := range stale {
		return fmt.Errorf("missed %v, the last event of its object; out of order: %v", s, got[:min(len(got), 1)])
	}
	if len(got) > 0 {
		return fmt.Errorf("got %v, which repeats an event or is out of order", got[0])
	}
	return nil
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
