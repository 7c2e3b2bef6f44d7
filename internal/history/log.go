package history

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/framecache"
)

// Options are what a Log is made with. The zero Options are sound.
type Options struct {
	// MaxAge is how long a record stays in the window once another is written: a log in which nothing happens keeps its
	// records. Zero: 5 minutes; negative: for ever.
	MaxAge time.Duration
	// MaxBytes is how many bytes the window may hold: records, the previous objects that they alone keep, and cached frames.
	// Zero: 256 MiB; negative: unlimited. The newest record stays, however large.
	MaxBytes int64
	// FrameBytes is how many of these bytes may be cached frames, and how many more those of initial events may take. Zero: a
	// quarter of MaxBytes; negative: unlimited.
	FrameCacheBytes int64
	// Description is what the log holds: it makes the bookmarks and says which fields a selector may name.
	Description listwatch.Description
	// Head is the newest version of the database that the log is part of; nil: the log has one of its own, which Append
	// moves on.
	Revision *Revision
}

// The defaults of [Options].
const (
	DefaultMaxAge   = 5 * time.Minute
	DefaultMaxBytes = 256 << 20
)

// A Log is the history and the state of one collection. It is safe for concurrent use.
type Log struct {
	// Immutable after construction.
	description listwatch.Description
	window      window
	head        *Revision
	ownsHead    bool
	budget      *framecache.Budget // of the records in the window
	initial     *framecache.Budget // of the objects that watches have begun with
	waker       waker

	ended atomic.Pointer[error] // what watchers end with; nil: the log goes on. Set under mu, once

	mu sync.Mutex
	// Guarded by mu.
	state   state
	records records
	feeds   feeds
	last    listwatch.Version        // of the newest record; at least the version the log began with
	waits   map[*futureWait]struct{} // those of cursors that wait for the head
}

// A Change is one write: a create (Old is nil), an update, or a delete (New is nil).
type Change struct {
	// Version is that of the write, and of New.
	Version  listwatch.Version
	Old, New *listwatch.Object
}

// New returns an empty Log that begins at the version of o.Head.
func New(o Options) *Log {
	l := &Log{description: o.Description, head: o.Revision, ownsHead: o.Revision == nil}
	if l.ownsHead {
		l.head = new(Revision)
	}
	l.window = window{maxAge: defaultTo(o.MaxAge, DefaultMaxAge), maxBytes: defaultTo(o.MaxBytes, DefaultMaxBytes)}
	frames := o.FrameCacheBytes
	if frames == 0 && l.window.maxBytes < 0 {
		frames = -1
	}
	frames = defaultTo(frames, l.window.maxBytes/4)
	l.budget, l.initial = framecache.NewBudget(frames), framecache.NewBudget(frames)
	l.last = l.head.Version()
	l.state = newState()
	l.records.floor = l.last
	l.feeds.init()
	return l
}

func defaultTo[T ~int64](v, zero T) T {
	if v == 0 {
		return zero
	}
	return v
}

// Describe returns what the log was made to hold.
func (l *Log) Describe() listwatch.Description { return l.description }

// Append adds changes, which all have one version, greater than any before, and come in key order. They become visible at once.
// Unless the Log has a Head of its own, the caller moves the Head on when Append has returned. Calls must come in the order of their
// versions. Readers are woken by another goroutine, so that Append may be called with a lock held.
func (l *Log) Append(changes ...Change) {
	if len(changes) == 0 {
		return
	}
	now := time.Now()
	l.mu.Lock()
	touched := l.feeds.touched[:0]
	for _, c := range changes {
		r := newRecord(c, now, l.budget)
		l.state.apply(r)
		l.records.push(r)
		touched = l.feeds.offer(r, l.records.next, touched)
	}
	l.last = changes[0].Version
	l.state.checkpoint(l.records.next)
	for i, f := range touched {
		if s := f.publish(); s != nil {
			l.waker.add(s)
		}
		touched[i] = nil
	}
	l.feeds.touched = touched
	l.trim(now)
	l.feeds.sweep(now)
	l.mu.Unlock()
	l.waker.start()
	if l.ownsHead {
		l.head.Advance(changes[0].Version)
	}
}

// now returns the version of the state: every write up to it is in the state and no other. l.mu is held.
//
// The Head may be ahead of the last record, where other collections were written, or just behind it, where Append has
// returned and the Head is about to move.
func (l *Log) now() listwatch.Version { return max(l.head.Version(), l.last) }

// Get returns the newest object at key, or nil.
func (l *Log) Get(key listwatch.Key) *listwatch.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, _ := l.state.tree.Get(&listwatch.Object{Key: key})
	return o
}

// Stats says how large a Log is.
type Stats struct {
	Objects         int               // in the current state
	Records         int               // in the window
	Bytes           int64             // of the records in the window and the objects that they alone keep
	FrameCacheBytes int64             // of cached frames, those of initial events included
	Floor           listwatch.Version // the oldest version that a watch may start from
	Version         listwatch.Version // the newest
	Feeds           int               // distinct selections followed now or a moment ago
	Watchers        int               // cursors not closed
}

// Stats returns the sizes of l now.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{
		Objects: l.state.tree.Len(), Records: l.records.len(), Bytes: l.records.bytes, FrameCacheBytes: l.budget.Used() + l.initial.Used(),
		Floor: l.records.floor, Version: l.now(), Feeds: len(l.feeds.bySelection), Watchers: l.feeds.watchers,
	}
}
