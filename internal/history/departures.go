package history

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/listwatch/listwatch"
)

// A departure is a write after which a selection may have lacked an object that it had before: a
// delete, or an update that changed labels or fields.
type departure struct {
	version listwatch.Version
	name    string
	from    *attributes // before the write
}

// departures holds the newest departures of a log. They outlive the records, because one takes
// about 100 bytes. Log.mu guards it.
type departures struct {
	maxBytes int64 // a negative value means no limit
	// chunks holds the departures, oldest first. The elements of a chunk never change, so readers
	// use copies of its slice.
	chunks   [][]departure
	bytes    int64
	interned map[string]*attributes
	// horizon is the oldest version since which all departures are known.
	horizon listwatch.Version
	gaps    []gap
	scratch attributesEncoder
}

// A gap is a range of versions that a Reset or the owner of the log has skipped. Both ends are
// known states. Between them another replica may have sent an object that this log has never seen.
type gap struct{ after, until listwatch.Version }

const (
	departureChunk = 256
	maxGaps        = 64
	// departureBytes estimates the memory of a departure, without the characters of its name.
	// attributesBytes estimates the memory of attributes and of their entry in the map, without
	// their text.
	departureBytes  = 32 + 8
	attributesBytes = 24 + 16 + 40
)

// addRecord adds a departure if r may be one.
func (d *departures) addRecord(r *Record) {
	if Departs(r.Old, r.New) {
		d.add(r.Version, r.Old)
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

// addReset adds the departures between the states before and after, at the versions of the gap g.
// If the log had missed a write up to the version of the state before, readers may have missed it,
// too. addReset then forgets all departures.
func (d *departures) addReset(before, after tree, g gap) {
	before.Scan(func(o *listwatch.Object) bool {
		if now, _ := after.Get(o); now != o && Departs(o, now) {
			d.add(g.until, o)
		}
		return true
	})
	if g.until > g.after {
		d.addGap(g)
	}
	// A log at version 0 has no state yet.
	if g.after == 0 || hasMissed(before, after, g.after) {
		d.forget(g.until)
	}
}

func (d *departures) addGap(g gap) {
	d.gaps = append(d.gaps, g)
	if len(d.gaps) > maxGaps {
		d.forget(d.gaps[0].until)
	}
}

// hasMissed reports whether the state after has a write up to v that the state before, at v, lacks.
func hasMissed(before, after tree, v listwatch.Version) (missed bool) {
	after.Scan(func(o *listwatch.Object) bool {
		if o.Version <= v {
			was, _ := before.Get(o)
			missed = !sameVersion(was, o)
		}
		return !missed
	})
	return missed
}

// add adds the departure of old, an object before a write of version v.
func (d *departures) add(v listwatch.Version, old *listwatch.Object) {
	last := len(d.chunks) - 1
	if last < 0 || len(d.chunks[last]) == departureChunk {
		var chunk []departure // the first chunk of a small collection grows
		if last >= 0 {
			chunk = make([]departure, 0, departureChunk)
		}
		d.chunks = append(d.chunks, chunk)
		last++
	}
	d.chunks[last] = append(d.chunks[last], departure{v, strings.Clone(old.Key.Name), d.intern(old)})
	d.bytes += int64(departureBytes + len(old.Key.Name))
	for d.maxBytes >= 0 && d.bytes > d.maxBytes && len(d.chunks) > 1 {
		d.dropChunk()
	}
}

func (d *departures) dropChunk() {
	oldest := d.chunks[0]
	for _, dep := range oldest {
		d.bytes -= int64(departureBytes + len(dep.name))
		if dep.from.users--; dep.from.users == 0 {
			d.bytes -= int64(attributesBytes + len(dep.from.text))
			delete(d.interned, dep.from.text)
		}
	}
	d.chunks[0] = nil
	d.chunks = d.chunks[1:]
	d.forget(oldest[len(oldest)-1].version)
}

// forget advances the horizon to v.
func (d *departures) forget(v listwatch.Version) {
	d.horizon = max(d.horizon, v)
	d.gaps = slices.DeleteFunc(d.gaps, func(g gap) bool { return g.until <= d.horizon })
}

// knows reports whether the departures from a state are known. The state has every write up to
// since, and may have later writes up to newest.
func (d *departures) knows(since, newest listwatch.Version) bool {
	return since >= d.horizon &&
		!slices.ContainsFunc(d.gaps, func(g gap) bool { return since < g.until && newest > g.after })
}

// after returns the departures after v, oldest first. Its slices do not change.
func (d *departures) after(v listwatch.Version) [][]departure {
	from := sort.Search(len(d.chunks), func(i int) bool {
		chunk := d.chunks[i]
		return chunk[len(chunk)-1].version > v
	})
	chunks := slices.Clone(d.chunks[from:])
	if len(chunks) > 0 {
		first := chunks[0]
		chunks[0] = first[sort.Search(len(first), func(i int) bool { return first[i].version > v }):]
	}
	return chunks
}

// intern returns the attributes of o, for one more departure.
func (d *departures) intern(o *listwatch.Object) *attributes {
	text := d.scratch.encode(o)
	a := d.interned[string(text)]
	if a == nil {
		if d.interned == nil {
			d.interned = make(map[string]*attributes)
		}
		a = &attributes{text: string(text)}
		d.interned[a.text] = a
		d.bytes += int64(attributesBytes + len(a.text))
	}
	a.users++
	return a
}
