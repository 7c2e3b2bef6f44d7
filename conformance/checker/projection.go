package checker

import (
	"slices"
	"sort"

	"github.com/listwatch/listwatch"
)

// A step is a write as a selection sees it.
type step struct {
	write int32
	what  EventType
}

// A projection is the history through one selection. Immutable after construction.
type projection struct {
	ledger *ledger
	steps  []step
	place  []int32 // by write: the number of its step, plus one; zero: it doesn't concern the selection
}

// newProjection returns the projection of l through s.
func newProjection(l *ledger, s Selection) (*projection, error) {
	m, err := newMatcher(s)
	if err != nil {
		return nil, err
	}
	p := &projection{ledger: l, place: make([]int32, len(l.writes))}
	for i := range l.writes {
		w := &l.writes[i]
		was, is := m.matches(w.Key, w.Before), m.matches(w.Key, w.After)
		var what EventType
		switch {
		case was && is:
			what = Modified
		case is:
			what = Added
		case was:
			what = Deleted
		default:
			continue
		}
		p.steps = append(p.steps, step{int32(i), what})
		p.place[i] = int32(len(p.steps))
	}
	return p, nil
}

// version returns that of step number n.
func (p *projection) version(n int) listwatch.Version {
	return p.ledger.writes[p.steps[n].write].Version
}

// after returns the number of the first step that is newer than v.
func (p *projection) after(v listwatch.Version) int {
	return sort.Search(len(p.steps), func(i int) bool { return p.version(i) > v })
}

// payload returns what step number n shows; zero: not known.
func (p *projection) payload(n int) Fingerprint {
	w := &p.ledger.writes[p.steps[n].write]
	if p.steps[n].what == Deleted {
		return w.Before.Fingerprint
	}
	return w.After.Fingerprint
}

// selectedAfter reports whether the object that write left is selected.
func (p *projection) selectedAfter(write int32) bool {
	n := p.place[write]
	return n != 0 && p.steps[n-1].what != Deleted
}

// A matcher decides whether an object is selected.
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

func (m *matcher) matches(key Key, side *ObjectState) bool {
	switch s := m.selection; {
	case side == nil:
		return false
	case s.Namespace != "" && s.Namespace != key.Namespace, s.Name != "" && s.Name != key.Name:
		return false
	case s.Tag != "":
		return slices.Contains(side.Tags, s.Tag)
	}
	if !m.labels.Matches(side.Labels) {
		return false
	}
	return m.fields.Empty() || m.fields.Matches(&listwatch.Object{Key: listwatch.Key(key), Fields: side.Fields})
}
