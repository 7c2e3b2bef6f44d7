// Package departures records which objects may have left which selections, so that a log can send a
// reader the difference to an old state.
package departures

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/ordered"
)

// A Departure is a write after which a selection may have lacked an object that it had before: a
// delete, or an update that changed labels or fields.
type Departure struct {
	Version listwatch.Version
	Name    string
	From    *Attributes // before the write
}

// A List holds the newest departures of a log. They outlive the records, because one takes
// about 100 bytes. It is not safe for concurrent use.
type List struct {
	MaxBytes int64 // a negative value means no limit
	// Chunks holds the departures, oldest first. The elements of a chunk never change, so readers
	// use copies of its slice.
	Chunks   [][]Departure
	Bytes    int64 // estimates the memory
	interned map[string]*Attributes
	// Horizon is the oldest version since which all departures are known.
	Horizon listwatch.Version
	Gaps    []Gap
	scratch attributesEncoder
}

// A Gap is a range of versions that a Reset or the owner of the log has skipped. Both ends are
// known states. Between them another replica may have sent an object that this log has never seen.
type Gap struct{ After, Until listwatch.Version }

const (
	// ChunkSize is the maximum length of a chunk.
	ChunkSize = 256
	// MaxGaps is the maximum number of gaps.
	MaxGaps = 64
	// departureBytes estimates the memory of a departure, without the characters of its name.
	// attributesBytes estimates the memory of attributes and of their entry in the map, without
	// their text.
	departureBytes  = 32 + 8
	attributesBytes = 24 + 16 + 40
)

// A Tree holds the objects of a state.
type Tree = ordered.Set[*listwatch.Object]

// AddWrite adds a departure if the write of version v, which changes old to now, may be one.
func (l *List) AddWrite(v listwatch.Version, old, now *listwatch.Object) {
	if Departs(old, now) {
		l.Add(v, old)
	}
}

// Departs reports whether a write that changes old to now, which may both be nil, may remove the
// object from a selection.
func Departs(old, now *listwatch.Object) bool {
	return old != nil && (now == nil || !equalAttributes(old, now))
}

func equalAttributes(a, b *listwatch.Object) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Fields, b.Fields)
}

// AddReset adds the departures between the states before and after, at the versions of the gap g.
// If the log had missed a write up to the version of the state before, readers may have missed it,
// too. AddReset then forgets all departures.
func (l *List) AddReset(before, after Tree, g Gap) {
	before.Scan(func(o *listwatch.Object) bool {
		if now, _ := after.Get(o); now != o && Departs(o, now) {
			l.Add(g.Until, o)
		}
		return true
	})
	if g.Until > g.After {
		l.AddGap(g)
	}
	// A log at version 0 has no state yet.
	if g.After == 0 || hasMissed(before, after, g.After) {
		l.Forget(g.Until)
	}
}

// AddGap adds a gap. If there are too many, it forgets what was before the oldest one.
func (l *List) AddGap(g Gap) {
	l.Gaps = append(l.Gaps, g)
	if len(l.Gaps) > MaxGaps {
		l.Forget(l.Gaps[0].Until)
	}
}

// hasMissed reports whether the state after has a write up to v that the state before, at v, lacks.
func hasMissed(before, after Tree, v listwatch.Version) (missed bool) {
	after.Scan(func(o *listwatch.Object) bool {
		if o.Version <= v {
			was, _ := before.Get(o)
			missed = was == nil || was.Version != o.Version
		}
		return !missed
	})
	return missed
}

// Add adds the departure of old, an object before a write of version v.
func (l *List) Add(v listwatch.Version, old *listwatch.Object) {
	last := len(l.Chunks) - 1
	if last < 0 || len(l.Chunks[last]) == ChunkSize {
		var chunk []Departure // the first chunk of a small collection grows
		if last >= 0 {
			chunk = make([]Departure, 0, ChunkSize)
		}
		l.Chunks = append(l.Chunks, chunk)
		last++
	}
	l.Chunks[last] = append(l.Chunks[last], Departure{v, strings.Clone(old.Key.Name), l.intern(old)})
	l.Bytes += int64(departureBytes + len(old.Key.Name))
	for l.MaxBytes >= 0 && l.Bytes > l.MaxBytes && len(l.Chunks) > 1 {
		l.dropChunk()
	}
}

func (l *List) dropChunk() {
	oldest := l.Chunks[0]
	for _, dep := range oldest {
		l.Bytes -= int64(departureBytes + len(dep.Name))
		if dep.From.users--; dep.From.users == 0 {
			l.Bytes -= int64(attributesBytes + len(dep.From.text))
			delete(l.interned, dep.From.text)
		}
	}
	l.Chunks[0] = nil
	l.Chunks = l.Chunks[1:]
	l.Forget(oldest[len(oldest)-1].Version)
}

// Forget advances the horizon to v.
func (l *List) Forget(v listwatch.Version) {
	l.Horizon = max(l.Horizon, v)
	l.Gaps = slices.DeleteFunc(l.Gaps, func(g Gap) bool { return g.Until <= l.Horizon })
}

// Knows reports whether the departures from a state are known. The state has every write up to
// since, and may have later writes up to newest.
func (l *List) Knows(since, newest listwatch.Version) bool {
	return since >= l.Horizon &&
		!slices.ContainsFunc(l.Gaps, func(g Gap) bool { return since < g.Until && newest > g.After })
}

// After returns the departures after v, oldest first. Its slices do not change.
func (l *List) After(v listwatch.Version) [][]Departure {
	from := sort.Search(len(l.Chunks), func(i int) bool {
		chunk := l.Chunks[i]
		return chunk[len(chunk)-1].Version > v
	})
	chunks := slices.Clone(l.Chunks[from:])
	if len(chunks) > 0 {
		first := chunks[0]
		chunks[0] = first[sort.Search(len(first), func(i int) bool { return first[i].Version > v }):]
	}
	return chunks
}

// intern returns the attributes of o, for one more departure.
func (l *List) intern(o *listwatch.Object) *Attributes {
	text := l.scratch.encode(o)
	a := l.interned[string(text)]
	if a == nil {
		if l.interned == nil {
			l.interned = make(map[string]*Attributes)
		}
		a = &Attributes{text: string(text)}
		l.interned[a.text] = a
		l.Bytes += int64(attributesBytes + len(a.text))
	}
	a.users++
	return a
}
