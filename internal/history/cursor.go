package history

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
)

// A Cursor is one watcher: a place in a feed. It is a [listwatch.Poller]. Close may be called from any goroutine, everything else
// belongs to the reader.
type Cursor struct {
	// Immutable after construction.
	log   *Log
	feed  *feed
	start start

	// Owned by the reader.
	phase   phase
	err     error             // what every further Poll returns
	after   listwatch.Version // nothing up to it is returned
	node    *node             // the last node read
	initial snapshotReader    // in phase initial
	replay  replay            // in phase replaying
	future  *futureWait       // in phase waiting
	signal  chan struct{}     // for Next; made when it first waits

	closed atomic.Bool

	// Guarded by feed.mu.
	wake  func()
	round uint64 // of the feed in which wake was armed
	slot  int    // in feed.sleepers, in that round
}

// A start is what of a query a Cursor still needs once it has its feed.
type start struct {
	version   listwatch.Version // to start after; meaningful where at
	at        bool
	initial   bool
	bookmarks bool
}

// A phase is what a Cursor does next. Phases follow each other in this order; some are left out.
type phase uint8

const (
	waiting   phase = iota // for the head to reach the version to start at
	initial                // returning the state
	synced                 // about to return the bookmark that ends it
	replaying              // reading records that are older than the feed
	following              // reading the feed
)

var _ listwatch.Poller = (*Cursor)(nil)

// Watch returns a Cursor on what q selects. It never waits: a version in the future is waited for by the Cursor, for 3 seconds,
// and is then its error.
func (l *Log) Watch(_ context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := q.Fields.Check(l.description.Fields); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := &Cursor{log: l, feed: l.feeds.join(newSelection(q), now)}
	c.start = start{version: q.Version, at: q.Start == listwatch.At, initial: q.SendsInitialEvents(), bookmarks: q.Bookmarks}
	if q.Start == listwatch.At && q.Version > now {
		c.future = waitForFuture(c)
		l.await(c.future)
		return c, nil
	}
	if err := c.begin(); err != nil {
		c.closed.Store(true)
		l.feeds.leave(c.feed, time.Now())
		return nil, err
	}
	return c, nil
}

// begin finds the place in history where c starts, which is there by now. log.mu is held.
func (c *Cursor) begin() error {
	l := c.log
	c.after = l.now()
	c.node = c.feed.tail
	c.phase = following
	switch {
	case c.start.initial:
		c.phase = initial
		c.initial = snapshotReader{tree: l.state.snapshot()}
	case c.start.at:
		c.after = c.start.version
		if c.after < l.records.floor {
			return expired(c.after, l.records.floor)
		}
		if c.after >= c.feed.begin {
			c.node = c.feed.find(c.after)
			break
		}
		c.phase = replaying
		c.replay = replay{next: l.records.after(c.after), end: l.records.next}
	}
	return nil
}

// Poll implements [listwatch.Poller].
func (c *Cursor) Poll(dst []listwatch.Event) (n int, err error) {
	if c.closed.Load() {
		return 0, io.EOF
	}
	for n < len(dst) && c.err == nil {
		before, was := n, c.phase
		switch c.phase {
		case waiting:
			c.pollFuture()
		case initial:
			n += c.pollInitial(dst[n:])
		case synced:
			c.phase = following
			if c.start.bookmarks {
				dst[n] = listwatch.NewBookmark(c.log.description, c.after, true)
				n++
			}
		case replaying:
			n += c.pollReplay(dst[n:], n > 0)
		case following:
			n += c.pollFeed(dst[n:], n > 0)
		}
		if n == before && c.phase == was {
			break
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, c.err
}

// pollFeed reads the feed. started says that the batch has events before those of dst.
func (c *Cursor) pollFeed(dst []listwatch.Event, started bool) (n int) {
	for n < len(dst) {
		// The end is looked at first: what was appended before it is in the feed.
		ended := c.log.endErr()
		next := c.node.next.Load()
		if next == nil {
			c.err = ended
			break
		}
		if next == cut {
			c.err = fellBehind(c.log.Stats().Floor)
			break
		}
		if (started || n > 0) && next.rec.version != c.node.rec.version && !next.groupFits(len(dst)-n) {
			break
		}
		c.node = next
		if next.rec.version > c.after {
			dst[n] = next.rec.event(next.what)
			n++
		}
	}
	return n
}

// groupFits reports whether the nodes of the version of n, which is the first of them, are at most room. A batch that has something in it
// leaves a group that does not fit to the next one, so that only a group larger than a whole batch is ever split.
func (n *node) groupFits(room int) bool {
	for next := n.next.Load(); next != nil && next != cut && next.rec.version == n.rec.version; next = next.next.Load() {
		if room--; room < 1 {
			return false
		}
	}
	return room > 0
}

// Next implements [listwatch.Watcher].
func (c *Cursor) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		if n, err := c.Poll(dst); n > 0 || err != nil {
			return n, err
		}
		if c.signal == nil {
			c.signal = make(chan struct{}, 1)
		}
		c.Wake(c.raise)
		select {
		case <-c.signal:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (c *Cursor) raise() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// Wake implements [listwatch.Poller].
func (c *Cursor) Wake(f func()) {
	asleep := false
	switch {
	case c.err != nil:
	case c.phase == waiting:
		asleep = c.future.sleep(f)
	case c.phase == following:
		asleep = c.feed.sleep(c, f)
	}
	if !asleep {
		f()
	}
}

// Position implements [listwatch.Poller].
func (c *Cursor) Position() listwatch.Version {
	switch c.phase {
	case replaying:
		return max(c.log.versionBefore(c.replay.next), c.after)
	case following:
		// The head is read first: what was appended before it got there is in the feed, if it concerns c.
		head := c.log.head.Version()
		switch next := c.node.next.Load(); next {
		case nil:
			return max(head, c.after, c.node.rec.version)
		case cut:
			return max(c.after, c.node.rec.version-1)
		default:
			return max(c.after, next.rec.version-1)
		}
	}
	return 0
}

// Close implements [listwatch.Watcher].
func (c *Cursor) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	wake := c.feed.rouse(c)
	if c.future != nil && wake == nil {
		wake = c.future.cancel()
	}
	c.log.mu.Lock()
	c.log.forget(c.future)
	c.log.feeds.leave(c.feed, time.Now())
	c.log.mu.Unlock()
	if wake != nil {
		wake()
	}
	return nil
}
