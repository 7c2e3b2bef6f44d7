package history

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// Watch returns a Cursor for the selection of q. It does not wait. If q starts at a version
// that is not reached within 3 seconds, the Cursor fails.
func (l *Log) Watch(_ context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := q.Fields.Check(l.description.Fields); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.version()
	c := &Cursor{feed: l.feeds.join(newSelection(q.Selection), now)}
	c.start = &start{
		atVersion: q.Start == listwatch.StartAt, version: q.Version,
		initialEvents: q.SendsInitialEvents(), bookmarks: q.Bookmarks,
	}
	if q.Conflate != 0 {
		c.conflates = true
		c.feed.conflate()
	}
	if q.Since.Version != 0 && q.Bookmarks && q.Since.ID == c.feed.stateID() {
		c.start.since = q.Since.Version
	}
	if c.start.atVersion && c.start.version > now {
		c.await()
		return c, nil
	}
	if err := c.begin(); err != nil {
		c.closed.Store(true)
		l.feeds.leave(c.feed, time.Now())
		return nil, err
	}
	return c, nil
}

// WatchAfter returns a Cursor like Watch, for a reader whose state at q.Version does not come from
// this log. If q requests initial events, they are the given objects, which the Cursor may sort.
// The Cursor waits for the version as long as it takes, so the database must have had it.
func (l *Log) WatchAfter(q listwatch.Query, objects []*listwatch.Object) (listwatch.Watcher, error) {
	if err := q.Fields.Check(l.description.Fields); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Cursor{feed: l.feeds.join(newSelection(q.Selection), l.version())}
	c.start = &start{atVersion: true, version: q.Version, isAhead: true}
	if q.SendsInitialEvents() {
		c.start.given = c.givenEvents(q, objects)
	}
	if q.Conflate != 0 {
		c.conflates = true
		c.feed.conflate()
	}
	c.await()
	return c, nil
}

// givenEvents returns the initial events of a state with the given objects.
func (c *Cursor) givenEvents(q listwatch.Query, objects []*listwatch.Object) []listwatch.Event {
	slices.SortFunc(objects, func(a, b *listwatch.Object) int { return a.Key.Compare(b.Key) })
	events := make([]listwatch.Event, 0, len(objects)+1)
	for _, o := range objects {
		e := listwatch.Event{Type: listwatch.Added, Initial: true, Version: o.Version}
		e.Object = c.feed.selection.Projection.Reduce(o)
		events = append(events, e)
	}
	if q.Bookmarks {
		at := listwatch.State{Version: q.Version, ID: c.feed.stateID()}
		events = append(events, listwatch.NewSynced(c.feed.log.description, at, 0))
	}
	return events
}

// await makes c wait for its start version. c.feed.log.mu must be held.
func (c *Cursor) await() {
	l := c.feed.log
	c.start.wait = newStartWait(l.revision, c.start.version, c.start.isAhead)
	l.addStartWait(c)
}

// begin enters the phase that follows awaitingStart. It is called when the start version
// has been reached, with log.mu held.
func (c *Cursor) begin() error {
	l, s := c.feed.log, c.start
	c.after = l.version()
	defer c.feed.lock()()
	c.node = c.feed.chain.newest
	switch {
	case s.initialEvents:
		c.phase, s.snapshot.tree = readingSnapshot, l.state.snapshot()
		if s.since = l.knownSince(s, c.after); s.since != 0 {
			s.snapshot.gone.departures = l.state.departures.after(s.since)
		}
		return nil
	case !s.atVersion:
	case s.version < l.records.floor:
		return expired(s.version, l.records.floor)
	case s.version >= c.feed.chain.floor.handle.version:
		c.after = s.version
		c.node = c.feed.chain.find(c.after)
	default:
		c.after = s.version
		c.phase, s.backlog = readingLog, backlog{next: l.records.numberAfter(c.after), end: l.records.next}
		return nil
	}
	c.readFeed()
	return nil
}

// rejoin makes c read the log, because the chain has dropped nodes that c has not read. If the log
// has dropped their records as well, c fails.
func (c *Cursor) rejoin() {
	l, skipped := c.feed.log, uint64(c.node.skipped)
	l.mu.Lock()
	defer l.mu.Unlock()
	unread := c.node.handle.number + skipped
	if skipped == 0 || unread < l.records.first() {
		c.err = fellBehind(l.records.floor)
		return
	}
	defer c.feed.lock()()
	if c.passEnd == 0 {
		c.after = max(c.after, l.records.get(unread).Version-1)
	}
	c.node = c.feed.chain.newest
	c.phase, c.start = readingLog, &start{
		visits: maxVisits, backlog: backlog{next: unread, end: l.records.next},
	}
}

// readFeed enters the last phase.
func (c *Cursor) readFeed() { c.phase, c.start = readingFeed, nil }

// Poll implements [listwatch.Poller].
func (c *Cursor) Poll(dst []listwatch.Event) (n int, err error) { return c.PollFrames(dst, nil) }

// maxVisits limits the objects, departures and records that one Poll visits before it reads the
// feed, so that a selective reader of a large collection does not occupy a processor, or a
// connection that other watches share, for long. Until then, Wake calls its function at once.
// Comparing the objects of a record counts as comparisonVisits.
const (
	maxVisits        = 8192
	comparisonVisits = 64
)

// visitsPerRecord returns the visits that a record counts as.
func (s *selection) visitsPerRecord() int {
	if s.Projection.Empty() {
		return 1
	}
	return comparisonVisits
}

// PollFrames is like Poll, and sets refs[i] to the frames of dst[i]. If refs is not nil, it must be
// as long as dst.
func (c *Cursor) PollFrames(dst []listwatch.Event, refs []frames.Ref) (n int, err error) {
	if c.closed.Load() {
		return 0, io.EOF
	}
	if c.start != nil {
		c.start.visits = maxVisits
	}
	out := batch{dst, refs}
	for n < len(dst) && c.err == nil {
		count, phase := 0, c.phase
		switch phase {
		case awaitingStart:
			if count = c.pollGiven(out.from(n)); count == 0 && len(c.start.given) == 0 {
				c.pollStartWait()
			}
		case readingSnapshot:
			count = c.pollSnapshot(out.from(n))
		case readingDepartures:
			count = c.pollDepartures(out.from(n))
		case snapshotRead:
			count = c.pollSynced(out.from(n))
		case readingLog:
			count = c.pollLog(out.from(n), n > 0)
		case readingFeed:
			count = c.pollFeed(out.from(n), n > 0)
		}
		if n += count; count == 0 && c.phase == phase {
			break
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, c.err
}

// IsCatchingUp reports whether c has not reached its feed, so that Poll may return fewer events
// than it could.
func (c *Cursor) IsCatchingUp() bool {
	return c.phase == readingSnapshot || c.phase == readingDepartures || c.phase == readingLog
}

// StateID returns the ID of the states that c reads; see [listwatch.State].
func (c *Cursor) StateID() string { return c.feed.stateID() }

// Next implements [listwatch.Watcher].
func (c *Cursor) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	return c.signal.next(ctx, c, dst)
}

// Wake implements [listwatch.Poller].
func (c *Cursor) Wake(f func()) {
	armed := false
	switch {
	case c.err != nil:
	case c.phase == awaitingStart && len(c.start.given) > 0:
	case c.phase == awaitingStart:
		armed = c.start.wait.arm(f)
	case c.phase == readingFeed:
		armed = c.feed.wakeups.arm(c, f)
	}
	if !armed {
		f()
	}
}

// isReady reports whether Poll has an event or an error to return. c must be in phase readingFeed.
func (c *Cursor) isReady() bool {
	return c.closed.Load() || c.node.next.Load() != nil || c.feed.log.closedWith() != nil
}

// Position implements [listwatch.Poller].
func (c *Cursor) Position() listwatch.Version {
	if c.passEnd != 0 {
		return c.after
	}
	switch c.phase {
	case awaitingStart:
		if c.start.isAhead && len(c.start.given) == 0 {
			return c.start.version
		}
	case readingLog:
		return max(c.feed.log.versionBefore(c.start.backlog.next), c.after)
	case readingFeed:
		// Load the revision first, because every event up to it that concerns c is then in
		// the feed.
		revision := c.feed.log.revision.Version()
		c.feed.catchUp()
		switch next := c.node.next.Load(); next {
		case nil:
			return max(revision, c.after, c.node.handle.version)
		case cutLink:
			unread := c.node.handle.number + uint64(c.node.skipped)
			return max(c.feed.log.versionBefore(unread), c.after, c.node.handle.version-1)
		default:
			return max(c.after, next.handle.version-1)
		}
	}
	return 0
}

// PendingError returns the error with which c fails if its start version is not reached in
// time. It returns nil if c does not wait for a version.
func (c *Cursor) PendingError() error {
	if c.phase != awaitingStart || c.start.isAhead {
		return nil
	}
	return tooLarge(c.start.version, c.feed.log.revision.Version())
}

// Close implements [listwatch.Watcher].
func (c *Cursor) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	l, wake := c.feed.log, c.feed.wakeups.disarm(c)
	l.mu.Lock()
	// Do not use c.start.wait here, because only the reader may access c.start.
	wait := l.startWaits[c]
	delete(l.startWaits, c)
	l.feeds.leave(c.feed, time.Now())
	l.mu.Unlock()
	if wait != nil {
		wake = wait.cancel()
	}
	if wake != nil {
		wake()
	}
	return nil
}
