package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/listwatch/listwatch"
)

// A writeLog contains the writes in order. It is immutable after construction.
type writeLog struct {
	all        []Write                     // ordered by version, then key
	firstIndex map[listwatch.Version]int32 // index of the first write of each version
	acked      versionsByTime              // the newest acknowledged version
	started    versionsByTime              // the newest version whose request was sent
}

// newWriteLog sorts the writes of h. It returns an error if they contradict each other.
func newWriteLog(h *History) (*writeLog, error) {
	l := &writeLog{all: slices.Clone(h.Writes), firstIndex: make(map[listwatch.Version]int32, len(h.Writes))}
	slices.SortFunc(l.all, func(a, b Write) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), a.Key.compare(b.Key))
	})
	exists := make(map[Key]bool)
	for i := range l.all {
		w := &l.all[i]
		if err := l.checkWrite(i, exists[w.Key]); err != nil {
			return nil, err
		}
		exists[w.Key] = w.After != nil
		if _, ok := l.firstIndex[w.Version]; !ok {
			l.firstIndex[w.Version] = int32(i)
		}
	}
	l.acked, l.started = versionsByTime{base: h.Meta.Base}, versionsByTime{base: h.Meta.Base}
	for _, w := range l.all {
		if w.Acked > 0 {
			l.acked.add(w.Acked, w.Version)
		}
		// If Began is zero, the write may have started at any time, so it counts as started from
		// the beginning.
		l.started.add(w.Began, w.Version)
	}
	l.acked.sort()
	l.started.sort()
	return l, nil
}

func (w *writeLog) checkWrite(i int, exists bool) error {
	write := &w.all[i]
	message := ""
	switch {
	case write.Version == 0:
		message = "has no version"
	case write.Before == nil && write.After == nil:
		message = "has neither Before nor After"
	case i > 0 && w.all[i-1].Version == write.Version && w.all[i-1].Key == write.Key:
		message = "is recorded twice"
	case exists && write.Before == nil:
		message = "has no Before, but the object exists"
	case !exists && write.Before != nil:
		message = "has a Before, but the object does not exist"
	default:
		return nil
	}
	return invalid(fmt.Sprintf("the write of %s at version %d %s", write.Key, write.Version, message))
}

func invalid(message string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: "check", Message: message}
}

// indexRange returns the range of indexes of the writes with version v. The range is empty
// if there are no such writes.
func (w *writeLog) indexRange(v listwatch.Version) (from, to int32) {
	from, ok := w.firstIndex[v]
	if !ok {
		return 0, 0
	}
	to = from + 1
	for int(to) < len(w.all) && w.all[to].Version == v {
		to++
	}
	return from, to
}

// find returns the index of the write of key at version v, or -1. others is the number of
// writes of other keys at v.
func (w *writeLog) find(v listwatch.Version, key Key) (write int32, others int32) {
	from, to := w.indexRange(v)
	for i := from; i < to; i++ {
		if w.all[i].Key == key {
			return i, to - from - 1
		}
	}
	return -1, to - from
}

// newest returns the version of the last write.
func (w *writeLog) newest() listwatch.Version {
	if len(w.all) == 0 {
		return 0
	}
	return w.all[len(w.all)-1].Version
}

// versionsByTime maps a time to the newest version at that time.
type versionsByTime struct {
	base   listwatch.Version
	points []versionAtTime
}

// A versionAtTime is a time and the newest version at that time.
type versionAtTime struct {
	at     time.Duration
	newest listwatch.Version
}

func (v *versionsByTime) add(at time.Duration, version listwatch.Version) {
	v.points = append(v.points, versionAtTime{at, version})
}

// sort prepares v for lookups.
func (v *versionsByTime) sort() {
	slices.SortStableFunc(v.points, func(a, b versionAtTime) int { return cmp.Compare(a.at, b.at) })
	newest := v.base
	for i := range v.points {
		newest = max(newest, v.points[i].newest)
		v.points[i].newest = newest
	}
}

// upTo returns the newest version at a time, including changes at exactly that time. With a
// fake clock, many changes have the same time and an unknown order, so callers choose
// between upTo and before.
func (v *versionsByTime) upTo(at time.Duration) listwatch.Version { return v.before(at + 1) }

// before is like upTo, but excludes changes at exactly the given time.
func (v *versionsByTime) before(at time.Duration) listwatch.Version {
	i := sort.Search(len(v.points), func(i int) bool { return v.points[i].at >= at })
	if i == 0 {
		return v.base
	}
	return v.points[i-1].newest
}
