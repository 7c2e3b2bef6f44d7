package history

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A UnionCursor is one watcher of a [Union]. It is a [listwatch.Poller] over one Cursor of each
// part, and holds at most one event of each that it has not returned yet. Events come in the order
// of versions. Close may be called from any goroutine. All other methods must be called by one
// reader.
type UnionCursor struct {
	// Immutable after construction.
	revision *Revision
	wakeFunc func() // fire; evaluated once, because each evaluation allocates

	// Owned by the reader.
	parts []unionPart
	// reading is the number of parts whose state has been returned.
	reading int
	synced  *listwatch.Event // the bookmark after the initial events; nil if none is due
	err     error            // the error that every later Poll returns
	signal  signal

	closed atomic.Bool

	mu sync.Mutex
	// Guarded by mu.
	wake   func() // nil unless the UnionCursor is armed
	cancel func() // cancels the callback of revision; nil if there is none
}

// A unionPart is the part of a UnionCursor that reads one log.
type unionPart struct {
	cursor *Cursor // reads the writes after the start
	state  *Cursor // only reads the state at the start; nil if that is not requested
	// pending[0] is the next event, and refs[0] its frames, if isPending is true. They are arrays
	// because PollFrames takes slices.
	pending   [1]listwatch.Event
	refs      [1]frames.Ref
	isPending bool
}

var _ listwatch.Poller = (*UnionCursor)(nil)

// open starts p at v, with the state at v if initialEvents is true.
func (p *unionPart) open(of Part, v listwatch.Version, initialEvents bool) error {
	q := listwatch.Query{
		Selection: of.Selection, Start: listwatch.StartAt, Version: v, InitialEvents: listwatch.InitialEventsNo,
	}
	w, err := of.Log.Watch(context.Background(), q)
	if err != nil {
		return err
	}
	p.cursor = w.(*Cursor)
	if !initialEvents {
		return nil
	}
	q.Match = listwatch.MatchExact
	tree, _, err := of.Log.snapshotFor(q, ContinueToken{})
	if err == nil {
		s := &start{snapshot: snapshotReader{tree: tree}}
		p.state = &Cursor{feed: p.cursor.feed, phase: readingSnapshot, start: s}
	}
	return err
}

// fill makes the next event of p pending, if there is one.
func (p *unionPart) fill() error {
	if p.isPending {
		return nil
	}
	n, err := p.cursor.PollFrames(p.pending[:], p.refs[:])
	// A stream that changed its feed with each event would join and leave segments all the time, so
	// the events of a union have no node.
	p.isPending, p.refs[0].Node = n > 0, nil
	return err
}

// take returns the pending event.
func (p *unionPart) take() (e listwatch.Event, ref frames.Ref) {
	e, ref = p.pending[0], p.refs[0]
	p.pending[0], p.refs[0], p.isPending = listwatch.Event{}, frames.Ref{}, false
	return e, ref
}

// Poll implements [listwatch.Poller].
func (c *UnionCursor) Poll(dst []listwatch.Event) (n int, err error) { return c.PollFrames(dst, nil) }

// PollFrames is like Poll, and sets refs[i] to the frames of dst[i]. If refs is not nil, it must be
// as long as dst.
func (c *UnionCursor) PollFrames(dst []listwatch.Event, refs []frames.Ref) (n int, err error) {
	if c.closed.Load() {
		return 0, io.EOF
	}
	out := batch{dst, refs}
	if c.readsState() {
		return c.pollState(out), nil
	}
	if n = c.pollParts(out); n > 0 {
		return n, nil
	}
	return 0, c.err
}

// IsCatchingUp reports whether c returns initial events or reads a log, so that Poll may return
// fewer events than it could.
func (c *UnionCursor) IsCatchingUp() bool {
	return c.readsState() || slices.ContainsFunc(c.parts, func(p unionPart) bool {
		return !p.isPending && p.cursor.IsCatchingUp()
	})
}

// readsState reports whether c returns initial events.
func (c *UnionCursor) readsState() bool { return c.reading < len(c.parts) || c.synced != nil }

// pollState returns initial events, one part after the other, and then the bookmark.
func (c *UnionCursor) pollState(dst batch) (n int) {
	for visits := maxVisits; c.reading < len(c.parts); c.reading++ {
		state := c.parts[c.reading].state
		size := state.start.snapshot.tree.Len()
		state.start.visits = visits
		n += state.pollSnapshot(dst.from(n))
		if state.phase == readingSnapshot {
			return n
		}
		c.parts[c.reading].state = nil
		visits = max(visits-size, 0) // size is an upper bound of the visits
	}
	if c.synced != nil && n < len(dst.events) {
		dst.put(n, *c.synced, frames.Ref{})
		c.synced = nil
		n++
	}
	return n
}

// pollParts returns the events up to the Revision. If a part fails, it returns no event of a later
// version than the events that the part has returned, so that no client resumes after events that
// it has missed.
func (c *UnionCursor) pollParts(dst batch) (n int) {
	// Load the revision before polling: each write up to it is then in its feed, so a part without
	// a pending event has no event up to it.
	revision := c.revision.Version()
	c.fill()
	for n < len(dst.events) && c.err == nil {
		next := c.next()
		if next == nil || next.pending[0].Version > c.settled(revision) {
			break
		}
		e, ref := next.take()
		dst.put(n, e, ref)
		n++
		c.err = next.fill()
	}
	return n
}

// fill fills all parts.
func (c *UnionCursor) fill() {
	for i := range c.parts {
		if c.err == nil {
			c.err = c.parts[i].fill()
		}
	}
}

// next returns the part with the oldest pending event, or nil if no event is pending. Among events
// of one version, the first part comes first.
func (c *UnionCursor) next() (next *unionPart) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.isPending && (next == nil || p.pending[0].Version < next.pending[0].Version) {
			next = p
		}
	}
	return next
}

// Next implements [listwatch.Watcher].
func (c *UnionCursor) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	return c.signal.next(ctx, c, dst)
}

// Position implements [listwatch.Poller].
func (c *UnionCursor) Position() listwatch.Version {
	if c.readsState() {
		return 0
	}
	revision := c.revision.Version() // first; see pollParts
	c.fill()
	next := c.next()
	switch {
	case c.err != nil:
		return 0
	case next != nil && next.pending[0].Version <= c.settled(revision):
		return next.pending[0].Version - 1
	}
	return c.settled(revision)
}

// settled returns the version up to which all parts have returned their events or have them
// pending. It is revision, unless a part is still reading its log.
func (c *UnionCursor) settled(revision listwatch.Version) listwatch.Version {
	for i := range c.parts {
		if p := &c.parts[i]; !p.isPending && p.cursor.IsCatchingUp() {
			revision = min(revision, p.cursor.Position())
		}
	}
	return revision
}

// Wake implements [listwatch.Poller].
func (c *UnionCursor) Wake(f func()) {
	c.arm(f)
	if c.err != nil || c.readsState() {
		c.fire()
		return
	}
	for i := range c.parts {
		if p := &c.parts[i]; !p.isPending {
			p.cursor.Wake(c.wakeFunc)
		}
	}
	// An event that is pending now may be newer than the revision, because a store advances the
	// revision after it has appended the event.
	if next := c.next(); next != nil {
		cancel := c.revision.onReached(next.pending[0].Version, c.wakeFunc)
		c.mu.Lock()
		c.cancel = cancel
		c.mu.Unlock()
	}
	if c.closed.Load() { // Close may have run before cancel was set
		c.fire()
	}
}

// arm makes fire call f.
func (c *UnionCursor) arm(f func()) {
	c.mu.Lock()
	cancel := c.cancel
	c.wake, c.cancel = f, nil
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// fire calls the function of the last Wake, unless it was already called.
func (c *UnionCursor) fire() {
	c.mu.Lock()
	wake, cancel := c.wake, c.cancel
	c.wake, c.cancel = nil, nil
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if wake != nil {
		wake()
	}
}

// Close implements [listwatch.Watcher].
func (c *UnionCursor) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	for i := range c.parts {
		if cursor := c.parts[i].cursor; cursor != nil {
			_ = cursor.Close() // always nil
		}
	}
	c.fire()
	return nil
}
