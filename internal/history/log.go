package history

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/revision"
)

// Options configure a Log. The zero value is ready to use.
type Options struct {
	// Retention limits the records. The limit of bytes includes their cached frames, their nodes in
	// feeds, and the old objects to which only these records refer.
	Retention listwatch.Retention
	// Description describes the collection. Bookmarks are built from it, and field
	// selectors may use only its fields.
	Description listwatch.Description
	// Revision is the newest version of the database that the log belongs to. The owner of
	// the Revision advances it. If nil, the log has its own Revision and advances it.
	Revision *revision.Revision
}

// The defaults of [Options].
const (
	DefaultMaxAge   = 5 * time.Minute
	DefaultMaxBytes = 256 << 20
	// DefaultSinceBytes is enough for about 140,000 departures.
	DefaultSinceBytes = 16 << 20
)

// A Log is the history and the state of one collection. It is safe for concurrent use.
type Log struct {
	// Immutable after construction.
	description  listwatch.Description
	retention    retention
	revision     *revision.Revision
	ownsRevision bool
	caches       caches
	waker        waker

	// closeError is nil while the log is open. It is set once, while mu is held.
	closeError atomic.Pointer[error]

	mu sync.Mutex
	// Guarded by mu.
	state      state
	records    recordRing
	feeds      feedIndex
	startWaits map[*live]*startWait
}

// New returns an empty Log that starts at the version of o.Revision.
func New(o Options) *Log {
	l := &Log{description: o.Description, revision: o.Revision, ownsRevision: o.Revision == nil}
	if l.ownsRevision {
		l.revision = new(revision.Revision)
	}
	l.retention = retention{
		maxAge: cmp.Or(o.Retention.Age, DefaultMaxAge), maxBytes: cmp.Or(o.Retention.Bytes, DefaultMaxBytes),
	}
	frameBytes := o.Retention.FrameCacheBytes
	if frameBytes == 0 && l.retention.maxBytes < 0 {
		frameBytes = -1
	}
	frameBytes = cmp.Or(frameBytes, l.retention.maxBytes/4)
	l.caches = newCaches(frameBytes)
	l.records.newest = l.revision.Version()
	l.state = newState()
	l.records.floor = l.records.newest
	l.state.departures = departures.List{
		MaxBytes: cmp.Or(o.Retention.SinceBytes, DefaultSinceBytes), Horizon: l.records.floor,
	}
	l.feeds = newFeedIndex(l)
	return l
}

// Append adds records, which become visible in one step. The records must be in order of version,
// and records of the same version in key order. All versions must be greater than those of the
// records of earlier calls. Append sets At of each record to the current time. Calls must be in
// version order. If Options.Revision was set, the caller must advance it after Append returns.
//
// Waiting cursors are woken on other goroutines, so the caller may hold locks.
func (l *Log) Append(records ...Record) {
	if len(records) > 0 {
		l.AppendUntil(records[len(records)-1].Version, records)
	}
}

// AppendUntil is like Append, for records after which the state has version v, because all other
// writes up to v are in other logs. The caller must advance the Revision to v.
func (l *Log) AppendUntil(v listwatch.Version, records []Record) {
	differences := l.compare(records)
	now := time.Now()
	l.mu.Lock()
	for i, r := range records {
		r.At = now
		added := l.addRecord(r)
		if differences != nil {
			added.differences = differences[i]
		}
		l.feeds.offer(added)
		added.differences = nil
	}
	l.records.newest = v
	l.state.checkpoint(l.records.next)
	l.feeds.publish(&l.waker)
	l.trim(now)
	l.mu.Unlock()
	l.waker.start()
	l.feeds.matcher.start()
	if l.ownsRevision {
		l.revision.Advance(v)
	}
}

// compare returns the differences of the objects of each record, or nil if no feed has a
// projection. One comparison serves all projections, and needs no lock.
func (l *Log) compare(records []Record) []*rawjson.Differences {
	if l.feeds.projections.Load() == 0 {
		return nil
	}
	all := make([]*rawjson.Differences, len(records))
	for i, r := range records {
		if r.Old != nil && r.New != nil {
			all[i] = rawjson.Compare(r.Old.Data, r.New.Data)
		}
	}
	return all
}

// addRecord adds r to the records and the state, but not to the feeds. l.mu must be held.
func (l *Log) addRecord(r Record) *record {
	added := newRecord(r, l.records.next, l.caches.records)
	l.state.apply(added)
	l.records.push(added)
	l.records.newest = r.Version
	return added
}

// CloseWithError closes the log. Every watcher returns the remaining events and then err,
// which is [io.EOF] for a clean end. A watcher that waits for its start version returns err
// immediately. The state can still be listed. After the call, no record may be appended.
// Only the first call has an effect.
//
// The Revision does not change, because other logs may share it.
func (l *Log) CloseWithError(err error) {
	l.mu.Lock()
	if !l.closeError.CompareAndSwap(nil, &err) {
		l.mu.Unlock()
		return
	}
	// A cursor that is armed from now on sees closeError. All cursors that are already
	// armed are in the wake lists. So every waiting cursor is woken.
	for _, f := range l.feeds.bySelection {
		l.waker.add(f.wakeups.take())
	}
	waits := l.startWaits
	l.startWaits = nil
	l.mu.Unlock()
	l.waker.start()
	for _, w := range waits {
		if wake := w.cancel(); wake != nil {
			wake()
		}
	}
}

// Stats returns the current sizes of l.
func (l *Log) Stats() listwatch.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	stats := listwatch.Stats{
		Objects: l.state.tree.Len(), Watchers: l.feeds.watchers,
		Oldest: l.records.floor, Newest: l.version(), Horizon: l.state.departures.Horizon,
		ObjectBytes: l.state.bytes, ObjectMemory: l.state.memory(),
		HistoryBytes: l.records.bytes + l.feeds.bytes() + l.caches.bytes() + l.state.departures.Bytes,
		Records:      l.records.len, Wakeups: l.waker.woken.Load(),
	}
	stats.Frames.Bytes, stats.Frames.Built = l.caches.bytes(), l.caches.built()
	stats.Window.Age, stats.Window.Bytes = l.retention.maxAge, l.retention.maxBytes
	stats.Window.DroppedEarly = l.records.droppedEarly
	if l.records.len > 0 {
		stats.Window.OldestAt = l.records.oldest().At
	}
	return stats
}

// Describe returns Options.Description.
func (l *Log) Describe() listwatch.Description { return l.description }

// version returns the version of the state, which contains every write up to this version
// and no later write. l.mu must be held.
//
// The Revision is ahead of the newest record if other collections were written since then.
// It is behind the newest record between the end of Append and the call of Advance.
func (l *Log) version() listwatch.Version { return max(l.revision.Version(), l.records.newest) }

// Get returns the newest object at key, or nil if there is none.
func (l *Log) Get(key listwatch.Key) *listwatch.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, _ := l.state.tree.Get(&listwatch.Object{Key: key})
	return o
}

// Objects returns the newest objects, in key order.
func (l *Log) Objects() (all []*listwatch.Object) {
	l.mu.Lock()
	snapshot := l.state.snapshot()
	l.mu.Unlock()
	snapshot.Scan(func(o *listwatch.Object) bool {
		all = append(all, o)
		return true
	})
	return all
}

// closedWith returns the error that the log was closed with, or nil while the log is open.
func (l *Log) closedWith() error {
	if err := l.closeError.Load(); err != nil {
		return *err
	}
	return nil
}
