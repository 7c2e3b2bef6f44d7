package history

import (
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/framecache"
)

// A record is one write. It is immutable but for what it caches.
type record struct {
	version  listwatch.Version
	at       time.Time
	old, new *listwatch.Object
	// frames are those of the three events that a write can be, by transition. They are apart from the record, which a budget
	// must not keep in memory.
	frames *[3]framecache.Frames

	leaveOnce sync.Once
	leave     *listwatch.Object
}

// A transition is what a write means to a selection.
type transition uint8

const (
	enter  transition = iota // the object is selected now and was not before, or did not exist
	change                   // selected before and after
	exit                     // selected before, and now not or gone
	none                     // not concerned
)

func newRecord(c Change, at time.Time, budget *framecache.Budget) *record {
	r := &record{version: c.Version, at: at, old: c.Old, new: c.New, frames: new([3]framecache.Frames)}
	for i := range r.frames {
		r.frames[i].SetBudget(budget)
	}
	return r
}

// initialEvent returns the event that shows o among the initial events of a watch.
func initialEvent(o *listwatch.Object, budget *framecache.Budget) listwatch.Event {
	e := listwatch.Event{Type: listwatch.Added, Initial: true, Object: o, Version: o.Version}
	return e.WithFrames(o.InitialFrames().Get(budget))
}

// event returns the event that a watcher receives for which the write is t.
func (r *record) event(t transition) listwatch.Event {
	e := listwatch.Event{Version: r.version}
	switch t {
	case enter:
		e.Type, e.Object = listwatch.Added, r.new
	case change:
		e.Type, e.Object = listwatch.Modified, r.new
	case exit:
		e.Type, e.Object = listwatch.Deleted, r.lastState()
	}
	return e.WithFrames(&r.frames[t])
}

// lastState returns the object before the write at the version of the write, which is what a DELETED event shows.
func (r *record) lastState() *listwatch.Object {
	r.leaveOnce.Do(func() { r.leave = r.old.At(r.version) })
	return r.leave
}

// recordOverhead is about what a record, its node in a feed or two and its share of the state's copied nodes take.
const recordOverhead = 512

// bytes is what the record holds beside the current state: itself and the object that the write replaced.
func (r *record) bytes() int64 {
	n := int64(recordOverhead)
	if r.old != nil {
		n += int64(len(r.old.Data))
		for k, v := range r.old.Labels {
			n += int64(len(k) + len(v) + 32)
		}
	}
	return n
}

// records are those in the window, oldest first, numbered without gaps for the life of the log.
type records struct {
	ring  []*record // a ring of which first..first+n-1 are in use
	first int
	n     int
	next  uint64 // number of the record to come; the oldest has next-n
	bytes int64
	// floor is the version of the newest record that has left the window, or the one the log began with.
	floor listwatch.Version
}

func (r *records) len() int          { return r.n }
func (r *records) oldest() *record   { return r.ring[r.first] }
func (r *records) at(i int) *record  { return r.ring[(r.first+i)%len(r.ring)] }
func (r *records) numberOf0() uint64 { return r.next - uint64(r.n) }

func (r *records) push(rec *record) {
	if r.n == len(r.ring) {
		r.grow()
	}
	r.ring[(r.first+r.n)%len(r.ring)] = rec
	r.n++
	r.next++
	r.bytes += rec.bytes()
}

func (r *records) grow() {
	ring := make([]*record, max(64, 2*len(r.ring)))
	for i := range r.n {
		ring[i] = r.at(i)
	}
	r.ring, r.first = ring, 0
}

func (r *records) pop() *record {
	rec := r.ring[r.first]
	r.ring[r.first] = nil
	r.first = (r.first + 1) % len(r.ring)
	r.n--
	r.bytes -= rec.bytes()
	r.floor = rec.version
	return rec
}

// after returns the number of the first record with a version greater than v.
func (r *records) after(v listwatch.Version) uint64 {
	lo, hi := 0, r.n
	for lo < hi {
		mid := (lo + hi) / 2
		if r.at(mid).version > v {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return r.numberOf0() + uint64(lo)
}

// copyFrom copies the records from number on, and before end, to dst; ok is false where number has left the window.
func (r *records) copyFrom(number, end uint64, dst []*record) (n int, ok bool) {
	base := r.numberOf0()
	if number < base {
		return 0, false
	}
	for n < len(dst) && number+uint64(n) < min(end, r.next) {
		dst[n] = r.at(int(number - base + uint64(n)))
		n++
	}
	return n, true
}
