package history

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A Record is one write: a create if Old is nil, a delete if New is nil, otherwise an update.
type Record struct {
	// Version is the version of the write, and of New.
	Version  listwatch.Version
	Old, New *listwatch.Object
	// At is the time of the write. The record may be dropped when Retention.Age has passed since
	// then.
	At time.Time
}

// object returns New, or Old for a delete.
func (r *Record) object() *listwatch.Object {
	if r.New != nil {
		return r.New
	}
	return r.Old
}

// A record is an entry of a log: a write, which never changes, and its caches.
type record struct {
	Record
	handle *handle
	// frames holds the cached frames of the record's event, by its type. It is allocated
	// separately, because the frame budget refers to it and must not keep the record in
	// memory.
	frames *[3]frames.Frames

	// differences are the differences between Old and New. They are nil unless the record is
	// offered to feeds with projections.
	differences *rawjson.Differences

	tombstoneOnce sync.Once
	tombstone     *listwatch.Object // the result of lastState
}

// A handle refers to a record until retention drops the record. The nodes of feeds hold handles, so
// that a watcher that has stopped reading keeps no dropped object in memory.
type handle struct {
	version listwatch.Version
	number  uint64                 // see recordRing
	record  atomic.Pointer[record] // nil if the record was dropped
}

func newRecord(r Record, number uint64, budget *frames.Budget) *record {
	added := &record{Record: r, frames: new([3]frames.Frames), handle: &handle{version: r.Version, number: number}}
	added.handle.record.Store(added)
	for i := range added.frames {
		added.frames[i].SetBudget(budget)
	}
	return added
}

// framesOf returns the cached frames of the event of type t.
func (r *record) framesOf(t listwatch.EventType) *frames.Frames { return &r.frames[t-listwatch.Added] }

// event returns the event of type t that r causes. o is the object that it shows.
func (r *record) event(t listwatch.EventType, o *listwatch.Object) listwatch.Event {
	return listwatch.Event{Type: t, Object: o, Version: r.Version, Committed: r.At}
}

// lastState returns the object before the write, but at the version of the write, for
// DELETED events. d describes the log.
func (r *record) lastState(d *listwatch.Description) *listwatch.Object {
	r.tombstoneOnce.Do(func() { r.tombstone = d.At(r.Old, r.Version) })
	return r.tombstone
}

// recordOverhead estimates the bytes of a record and of the tree nodes that the write has copied.
const recordOverhead = 512

// bytes estimates the memory that is released when the record is dropped: the record itself
// and the object that the write replaced.
func (r *record) bytes() int64 {
	n := int64(recordOverhead)
	if r.Old != nil {
		size := int64(len(r.Old.Data))
		n += size + size/sizeClassGap // as in state.memory, so that a deleted object takes no less
		for k, v := range r.Old.Labels {
			n += int64(len(k) + len(v) + 32)
		}
	}
	return n
}

// A recordRing holds the retained records, oldest first. Records are numbered without gaps
// over the lifetime of the log.
type recordRing struct {
	slots []*record // the record with number n is in slots[n % len(slots)]
	len   int
	next  uint64 // the number of the next record; the oldest has number next-len
	bytes int64  // the sum of record.bytes
	// droppedEarly is the number of records dropped before Retention.Age.
	droppedEarly uint64
	// published is next, for readers that do not hold Log.mu.
	published atomic.Uint64
	// floor is the version of the newest dropped record, or the start version of the log.
	floor listwatch.Version
	// newest is the version of the state after the newest record or, if the log is empty, its start
	// version.
	newest listwatch.Version
	// barred are the ranges of versions, above the floor, inside which nothing can start; see
	// Log.Bar.
	barred []departures.Gap
}

// canStart reports whether a watch or a list can start at v, which the log has reached.
func (r *recordRing) canStart(v listwatch.Version) bool {
	return v >= r.floor &&
		!slices.ContainsFunc(r.barred, func(g departures.Gap) bool { return g.After < v && v < g.Until })
}

// first returns the number of the oldest record.
func (r *recordRing) first() uint64 { return r.next - uint64(r.len) }

// get returns the record with the given number, which must be retained.
func (r *recordRing) get(number uint64) *record { return r.slots[number%uint64(len(r.slots))] }

func (r *recordRing) oldest() *record { return r.get(r.first()) }

func (r *recordRing) push(added *record) {
	if r.len == len(r.slots) {
		grown := make([]*record, max(64, 2*len(r.slots)))
		for n := r.first(); n < r.next; n++ {
			grown[n%uint64(len(grown))] = r.get(n)
		}
		r.slots = grown
	}
	r.slots[r.next%uint64(len(r.slots))] = added
	r.len++
	r.next++
	r.published.Store(r.next)
	r.bytes += added.bytes()
}

// pop removes the oldest record.
func (r *recordRing) pop() *record {
	slot := &r.slots[r.first()%uint64(len(r.slots))]
	oldest := *slot
	*slot = nil
	r.len--
	r.bytes -= oldest.bytes()
	r.floor = oldest.Version
	oldest.handle.record.Store(nil)
	return oldest
}

// numberAfter returns the number of the first record with a version greater than v, or
// r.next if there is no such record.
func (r *recordRing) numberAfter(v listwatch.Version) uint64 {
	first := r.first()
	i := sort.Search(r.len, func(i int) bool { return r.get(first+uint64(i)).Version > v })
	return first + uint64(i)
}

// appendGroups appends the records from the given number on to dst, until dst has at least count
// records. It does not split the records of one version.
func (r *recordRing) appendGroups(dst []*record, from uint64, count int) []*record {
	for ; from < r.next; from++ {
		next := r.get(from)
		if n := len(dst); n >= count && dst[n-1].Version != next.Version {
			break
		}
		dst = append(dst, next)
	}
	return dst
}

// copyRange copies the records with numbers in [from, to) to dst, as many as fit. It returns false
// if the record with the number from was dropped.
func (r *recordRing) copyRange(from, to uint64, dst []*record) (n int, ok bool) {
	if from < r.first() {
		return 0, false
	}
	for n < len(dst) && from+uint64(n) < min(to, r.next) {
		dst[n] = r.get(from + uint64(n))
		n++
	}
	return n, true
}
