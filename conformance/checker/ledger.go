package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/listwatch/listwatch"
)

// A ledger is the writes in order, and what can be asked of them. Immutable after construction.
type ledger struct {
	writes []Write                     // by version, then key
	group  map[listwatch.Version]int32 // where the writes of a version begin
	acked  timeline                    // the newest version acknowledged by a time
	begun  timeline                    // the newest version that can be known to anybody by a time
}

// newLedger sorts the writes of h and refuses those that can't be a history.
func newLedger(h *History) (*ledger, error) {
	l := &ledger{writes: slices.Clone(h.Writes), group: make(map[listwatch.Version]int32, len(h.Writes))}
	slices.SortFunc(l.writes, func(a, b Write) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), a.Key.compare(b.Key))
	})
	there := make(map[Key]bool)
	for i := range l.writes {
		w := &l.writes[i]
		if err := l.checkWrite(i, there[w.Key]); err != nil {
			return nil, err
		}
		there[w.Key] = w.After != nil
		if _, ok := l.group[w.Version]; !ok {
			l.group[w.Version] = int32(i)
		}
	}
	l.acked, l.begun = timeline{base: h.Meta.Base}, timeline{base: h.Meta.Base}
	for _, w := range l.writes {
		if w.Acked > 0 {
			l.acked.add(w.Acked, w.Version)
		}
		l.begun.add(w.Began, w.Version) // who doesn't say when may have begun at any time
	}
	l.acked.sort()
	l.begun.sort()
	return l, nil
}

func (l *ledger) checkWrite(i int, there bool) error {
	w := &l.writes[i]
	message := ""
	switch {
	case w.Version == 0:
		message = "has no version"
	case w.Before == nil && w.After == nil:
		message = "has neither a before nor an after"
	case i > 0 && l.writes[i-1].Version == w.Version && l.writes[i-1].Key == w.Key:
		message = "is there twice"
	case there && w.Before == nil:
		message = "creates what is there"
	case !there && w.Before != nil:
		message = "changes what is not there"
	default:
		return nil
	}
	return invalid(fmt.Sprintf("the write of %s at version %d %s", w.Key, w.Version, message))
}

func invalid(message string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: "check", Message: message}
}

// at returns where the writes of version v begin and end; nothing where there are none.
func (l *ledger) at(v listwatch.Version) (from, to int32) {
	from, ok := l.group[v]
	if !ok {
		return 0, 0
	}
	to = from + 1
	for int(to) < len(l.writes) && l.writes[to].Version == v {
		to++
	}
	return from, to
}

// find returns the write of key at v; -1: there is none. others says that v has writes of other keys.
func (l *ledger) find(v listwatch.Version, key Key) (write int32, others int32) {
	from, to := l.at(v)
	for i := from; i < to; i++ {
		if l.writes[i].Key == key {
			return i, to - from - 1
		}
	}
	return -1, to - from
}

// newest returns the version of the last write.
func (l *ledger) newest() listwatch.Version {
	if len(l.writes) == 0 {
		return 0
	}
	return l.writes[len(l.writes)-1].Version
}

// A timeline tells which version was the newest by a time.
type timeline struct {
	base   listwatch.Version
	points []point
}

// A point is a time and the newest version by then.
type point struct {
	at     time.Duration
	newest listwatch.Version
}

func (t *timeline) add(at time.Duration, v listwatch.Version) {
	t.points = append(t.points, point{at, v})
}

// sort makes t ready for questions.
func (t *timeline) sort() {
	slices.SortStableFunc(t.points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	newest := t.base
	for i := range t.points {
		newest = max(newest, t.points[i].newest)
		t.points[i].newest = newest
	}
}

// by returns the newest version at the time at, whatever happened at that very time included; before leaves that out. Fake clocks
// make many things happen at one time, and then nobody knows what came first.
func (t *timeline) by(at time.Duration) listwatch.Version { return t.before(at + 1) }

func (t *timeline) before(at time.Duration) listwatch.Version {
	i := sort.Search(len(t.points), func(i int) bool { return t.points[i].at >= at })
	if i == 0 {
		return t.base
	}
	return t.points[i-1].newest
}
