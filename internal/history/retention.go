package history

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
)

// retention limits the records kept. It is immutable. A negative field means no limit.
type retention struct {
	maxAge   time.Duration
	maxBytes int64
}

// maxTrimmedByAge limits the number of records that one Append drops because of their age,
// so that the first write after an idle hour does not have to drop all of them.
const maxTrimmedByAge = 128

// trim drops the records that exceed the retention, except the newest one. l.mu must be
// held.
func (l *Log) trim(now time.Time) {
	for range maxTrimmedByAge {
		if l.records.len <= 1 || l.retention.maxAge < 0 || now.Sub(l.records.oldest().At) <= l.retention.maxAge {
			break
		}
		l.dropOldest()
	}
	l.trimBytes(now)
}

// trimBytes drops records until the remaining ones fit into maxBytes. l.mu must be held.
func (l *Log) trimBytes(now time.Time) {
	limit := l.retention.maxBytes
	for l.records.len > 1 && limit >= 0 && l.records.bytes+l.feeds.nodeBytes()+l.caches.records.Used() > limit {
		if now.Sub(l.records.oldest().At) < l.retention.maxAge {
			l.records.droppedEarly++
		}
		l.dropOldest()
	}
}

// Compact drops all records up to the Revision. A watch that starts at an earlier version then
// expires. Open watches that have read every event continue.
func (l *Log) Compact() { l.CompactTo(math.MaxUint64) }

// CompactTo drops the records up to v. The state at v can still be listed, and a watch may start at
// v. If v is greater than the Revision, the Revision is used. Newer records are kept, so that a
// watch can start at the Revision.
func (l *Log) CompactTo(v listwatch.Version) {
	defer l.waker.start()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compactTo(min(v, l.revision.Version()))
}

// compactTo is CompactTo for a version that the log has reached. l.mu must be held.
func (l *Log) compactTo(v listwatch.Version) {
	for l.records.len > 0 && l.records.oldest().Version <= v {
		l.dropOldest()
	}
	// If v is the version of a write to another collection, this log has no record with that
	// version. Earlier versions must expire nevertheless.
	l.records.floor = max(l.records.floor, v)
}

// Bar makes the versions between after and until unusable as the start of a watch or a list. Both
// ends stay usable. It is for an owner that has missed what happened between them and next appends
// only the difference: another replica may have shown objects there that this log never had.
// Cursors that wait for such a version expire, and the others continue.
func (l *Log) Bar(after, until listwatch.Version) {
	defer l.waker.start()
	l.mu.Lock()
	defer l.mu.Unlock()
	g, r := departures.Gap{After: after, Until: until}, &l.records
	l.state.departures.AddGap(g)
	r.barred = append(slices.DeleteFunc(r.barred, func(g departures.Gap) bool { return g.Until <= r.floor }), g)
	if len(r.barred) > departures.MaxGaps {
		l.compactTo(r.barred[0].Until)
	}
}

// dropOldest removes the oldest record from the log and from every feed. l.mu must be held.
func (l *Log) dropOldest() {
	l.feeds.matcher.offerOldest()
	r := l.records.pop()
	l.feeds.drop(r)
	l.state.drop(r, l.records.first())
	for i := range r.frames {
		r.frames[i].Drop()
	}
	l.caches.initial.drop(r.Old)
}

// stateAt returns the state at v. v must not be less than the floor. l.mu must be held.
func (l *Log) stateAt(v listwatch.Version) tree {
	if v >= l.records.newest {
		return l.state.snapshot()
	}
	from, to, base := l.records.first(), l.records.numberAfter(v), l.state.base
	checkpoints := l.state.checkpoints
	if i := sort.Search(len(checkpoints), func(i int) bool { return checkpoints[i].number > to }); i > 0 {
		from, base = checkpoints[i-1].number, checkpoints[i-1].tree
	}
	t := base.Copy()
	for ; from < to; from++ {
		applyTo(t, l.records.get(from))
	}
	return t
}

// ContainsWrite reports whether the log retains a write of version v to the object at key.
func (l *Log) ContainsWrite(v listwatch.Version, key listwatch.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := l.records.numberAfter(v - 1); n < l.records.next; n++ {
		r := l.records.get(n)
		if r.Version != v {
			return false
		}
		if r.object().Key == key {
			return true
		}
	}
	return false
}
