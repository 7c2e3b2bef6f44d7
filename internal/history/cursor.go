package history

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A Cursor is one watcher of a Log. It is a [listwatch.Poller]. Close may be called from
// any goroutine. All other methods must be called by one reader.
type Cursor struct {
	// Immutable after construction.
	feed *feed

	// Owned by the reader.
	err error // the error that every later Poll returns
	// after is the version up to which the Cursor returns no events. Within a pass, it is the
	// position at which the pass began.
	after listwatch.Version
	node  *node // the last node read
	// start is nil in phase readingFeed, so that an idle cursor is small.
	start  *start
	signal signal
	phase  phase
	// conflates is true if the cursor skips superseded events; immutable.
	conflates bool
	// passEnd is the version at which the pass of a conflating cursor ends. It is zero between two
	// passes.
	passEnd listwatch.Version

	closed atomic.Bool

	wakeEntry // guarded by the mutex of feed.wakeups
}

// start holds what a cursor needs until it reads its feed.
type start struct {
	// The options of the query that still matter after the cursor joined a feed.
	atVersion     bool
	version       listwatch.Version // the start version, if atVersion is true
	initialEvents bool
	bookmarks     bool
	// since is the version of the reader's state. It is zero if the reader needs the whole state.
	since listwatch.Version
	// isAhead is true if the state of the reader is at the start version already. The cursor then
	// waits for that version as long as it takes, after it has returned the given events.
	isAhead bool
	given   []listwatch.Event

	// visits is the number of objects, departures and records that the current Poll may still
	// visit.
	visits   int
	wait     *startWait     // used in phase awaitingStart
	snapshot snapshotReader // used in phases readingSnapshot and readingDepartures
	backlog  backlog        // used in phase readingLog
}

// A phase is a step in the life of a Cursor. The package comment has a diagram, and
// internal/models/cursor.pml is a model of the phases.
type phase uint8

const (
	awaitingStart     phase = iota // waiting for the version to start at
	readingSnapshot                // returning the objects among the initial events
	readingDepartures              // returning the keys that a difference deletes
	snapshotRead                   // about to return the bookmark after the initial events
	readingLog                     // reading records that are older than the feed
	readingFeed
)

var _ listwatch.Poller = (*Cursor)(nil)

// A startWait is the state of a cursor that waits for its start version.
type startWait struct {
	cancelReached func()      // cancels the callback of the Revision
	timer         *time.Timer // nil if the wait has no timeout

	mu sync.Mutex
	// Guarded by mu.

	// over is true if the version was reached, the wait timed out, or the cursor or the log was
	// closed.
	over bool
	wake func()
}

// A batch is the free part of the slices that a caller of PollFrames passed.
type batch struct {
	events []listwatch.Event
	refs   []frames.Ref // nil if the caller does not need frames
}

// from returns b without its first n elements.
func (b batch) from(n int) batch {
	if b.refs != nil {
		b.refs = b.refs[n:]
	}
	return batch{b.events[n:], b.refs}
}

// put sets element i of b.
func (b batch) put(i int, e listwatch.Event, ref frames.Ref) {
	b.events[i] = e
	if b.refs != nil {
		b.refs[i] = ref
	}
}

// A snapshotReader reads a snapshot in key order, in batches, or its difference to an earlier
// state.
type snapshotReader struct {
	tree tree
	last listwatch.Key // the key of the last object visited
	gone goneReader
}

// A backlog is a range of record numbers: the records between the start version of a cursor
// and the start of its feed.
type backlog struct {
	next, end uint64
	conflated conflatedRange // used by conflating cursors
}
