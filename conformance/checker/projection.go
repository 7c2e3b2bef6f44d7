package checker

import (
	"slices"
	"sort"

	"github.com/listwatch/listwatch"
)

// An expectedEvent is the event that a write causes in a selection.
type expectedEvent struct {
	write     int32
	eventType EventType
}

// A projection is the immutable sequence of events that a watcher of one selection must see. A
// position is an index into that sequence.
type projection struct {
	writes    *writeLog
	events    []expectedEvent
	positions []int32 // for each write, the position of its event plus one; zero if it causes none
}

// newProjection returns the events that the writes in l cause in the selection s.
func newProjection(l *writeLog, s Selection) (*projection, error) {
	m, err := newMatcher(s)
	if err != nil {
		return nil, err
	}
	p := &projection{writes: l, positions: make([]int32, len(l.all))}
	for i := range l.all {
		w := &l.all[i]
		was, is := m.matches(w.Key, w.Before), m.matches(w.Key, w.After)
		var eventType EventType
		switch {
		case was && is:
			eventType = Modified
		case is:
			eventType = Added
		case was:
			eventType = Deleted
		default:
			continue
		}
		p.events = append(p.events, expectedEvent{int32(i), eventType})
		p.positions[i] = int32(len(p.events))
	}
	return p, nil
}

// versionAt returns the version of the event at position n.
func (p *projection) versionAt(n int) listwatch.Version {
	return p.writes.all[p.events[n].write].Version
}

// stateAt returns the versions of the objects at version v.
func (p *projection) stateAt(v listwatch.Version) map[Key]listwatch.Version {
	state := make(map[Key]listwatch.Version)
	for _, e := range p.events[:p.firstAfter(v)] {
		w := &p.writes.all[e.write]
		if delete(state, w.Key); e.eventType != Deleted {
			state[w.Key] = w.Version
		}
	}
	return state
}

// hadSince reports whether the selection has contained the object at version v or later.
func (p *projection) hadSince(key Key, v listwatch.Version) bool {
	had := false
	for n, e := range p.events {
		if p.writes.all[e.write].Key != key {
			continue
		}
		if p.versionAt(n) > v {
			return true // it entered, changed in or left the selection
		}
		had = e.eventType != Deleted
	}
	return had
}

// firstAfter returns the position of the first event that is newer than v.
func (p *projection) firstAfter(v listwatch.Version) int {
	return sort.Search(len(p.events), func(i int) bool { return p.versionAt(i) > v })
}

// fingerprintAt returns the fingerprint of the object at position n, or zero if it is
// unknown.
func (p *projection) fingerprintAt(n int) Fingerprint {
	w := &p.writes.all[p.events[n].write]
	if p.events[n].eventType == Deleted {
		return w.Before.Fingerprint
	}
	return w.After.Fingerprint
}

// selectsResultOf reports whether the selection contains the object that the write
// produced.
func (p *projection) selectsResultOf(write int32) bool {
	n := p.positions[write]
	return n != 0 && p.events[n-1].eventType != Deleted
}

// A matcher decides whether a selection contains an object.
type matcher struct {
	selection Selection
	labels    listwatch.LabelSelector
	fields    listwatch.FieldSelector
}

func newMatcher(s Selection) (*matcher, error) {
	m := &matcher{selection: s}
	if s.Tag != "" {
		return m, nil
	}
	var err error
	if m.labels, err = listwatch.ParseLabelSelector(s.Labels); err != nil {
		return nil, err
	}
	m.fields, err = listwatch.ParseFieldSelector(s.Fields)
	return m, err
}

func (m *matcher) matches(key Key, state *ObjectState) bool {
	switch s := m.selection; {
	case state == nil:
		return false
	case s.Namespace != "" && s.Namespace != key.Namespace, s.Name != "" && s.Name != key.Name:
		return false
	case s.Tag != "":
		return slices.Contains(state.Tags, s.Tag)
	}
	if !m.labels.Matches(state.Labels) {
		return false
	}
	return m.fields.Empty() || m.fields.Matches(&listwatch.Object{Key: listwatch.Key(key), Fields: state.Fields})
}
