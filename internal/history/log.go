package history

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
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
	Revision *Revision
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
	revision     *Revision
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
