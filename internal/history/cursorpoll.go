package history

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// newStartWait returns a wait for v. If patient is true, it has no timeout.
func newStartWait(r *Revision, v listwatch.Version, patient bool) *startWait {
	w := new(startWait)
	if !patient {
		w.timer = time.AfterFunc(versionTimeout, w.end)
	}
	w.cancelReached = r.onReached(v, w.end)
	return w
}

// addStartWait registers the startWait of c so that CloseWithError ends it. If the log is already
// closed, addStartWait ends the wait at once. l.mu must be held.
func (l *Log) addStartWait(c *Cursor) {
	if l.closedWith() != nil {
		c.start.wait.cancel()
		return
	}
	if l.startWaits == nil {
		l.startWaits = make(map[*Cursor]*startWait)
	}
	l.startWaits[c] = c.start.wait
}

func (w *startWait) end() {
	if wake := w.setOver(); wake != nil {
		wake()
	}
}

// setOver marks the wait as over and returns its wake function, or nil if none is armed.
func (w *startWait) setOver() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake := w.wake
	w.wake, w.over = nil, true
	return wake
}

func (w *startWait) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// arm registers wake, which is called when the wait ends. It returns false if the wait has
// already ended.
func (w *startWait) arm(wake func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.wake = wake
	}
	return !w.over
}

// cancel ends the wait and returns its wake function, or nil if none is armed.
func (w *startWait) cancel() func() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancelReached()
	return w.setOver()
}

// pollGiven returns the events that WatchAfter was given.
func (c *Cursor) pollGiven(dst batch) int {
	n := min(len(c.start.given), len(dst.events))
	for i, e := range c.start.given[:n] {
		dst.put(i, e, frames.Ref{})
	}
	c.start.given = c.start.given[n:]
	return n
}

// pollStartWait does nothing while c waits for its start version. After the wait it moves c to the
// next phase, or makes c fail.
func (c *Cursor) pollStartWait() {
	wait := c.start.wait
	if !wait.isOver() {
		return
	}
	wait.cancel()
	l := c.feed.log
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.startWaits, c)
	if c.err = l.closedWith(); c.err != nil {
		return
	}
	if now := l.version(); now < c.start.version {
		c.err = tooLarge(c.start.version, now)
		return
	}
	c.err = c.begin()
}

func (c *Cursor) pollSnapshot(dst batch) (n int) {
	s, r, since, visits := &c.feed.selection, &c.start.snapshot, c.start.since, &c.start.visits
	done := true
	var visited *listwatch.Object
	s.scan(r.tree, r.last, func(o *listwatch.Object) bool {
		selected := o.Version > since && s.Matches(o)
		if done = *visits > 0 && (!selected || n < len(dst.events)); !done {
			return false
		}
		*visits--
		if visited = o; selected {
			shown := s.Projection.Reduce(o)
			e := listwatch.Event{Type: listwatch.Added, Initial: true, Object: shown, Version: o.Version}
			dst.put(n, e, frames.Ref{})
			n++
		}
		return true
	})
	switch {
	case !done && visited != nil:
		r.last = visited.Key
	case done && since != 0:
		c.phase = readingDepartures
	case done:
		c.phase, c.start.snapshot = snapshotRead, snapshotReader{}
	}
	if dst.refs != nil && s.Projection.Empty() {
		c.feed.log.initialRefs(dst.events[:n], dst.refs[:n])
	}
	return n
}

// initialRefs sets refs to the frames of events, which must be initial events.
func (l *Log) initialRefs(events []listwatch.Event, refs []frames.Ref) {
	if l.caches.initial.lookup(events, refs) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.caches.initial.add(l.state.tree, events, refs)
}

func (c *Cursor) pollSynced(dst batch) (n int) {
	bookmarks, since := c.start.bookmarks, c.start.since
	if c.readFeed(); !bookmarks {
		return 0
	}
	f := c.feed
	at := listwatch.State{Version: c.after, ID: f.stateID()}
	dst.put(0, listwatch.NewSynced(f.log.description, at, since), frames.Ref{})
	return 1
}

// pollLog reads the backlog into dst. hasEvents reports whether the caller's batch already has
// events before dst.
func (c *Cursor) pollLog(dst batch, hasEvents bool) (n int) {
	var buf [128]*record
	var last listwatch.Version // of the last record visited
	s, b := &c.feed.selection, &c.start.backlog
	for n < len(dst.events) && b.next < b.end {
		end := b.end
		if c.conflates {
			end = c.conflateBacklog()
		}
		c.feed.log.mu.Lock()
		count, ok := c.feed.log.records.copyRange(b.next, end, buf[:])
		floor := c.feed.log.records.floor
		c.feed.log.mu.Unlock()
		if !ok {
			c.err = fellBehind(floor)
			return n
		}
		for i, r := range buf[:count] {
			startsGroup := r.Version != last
			room := len(dst.events) - n
			if room == 0 || startsGroup && c.start.visits <= 0 ||
				(hasEvents || n > 0) && startsGroup && !groupFits(buf[i:count], room) {
				return n
			}
			if t := s.effect(r); t != 0 && r.Version > c.after && !b.conflated.skips(b.next) {
				ref := frames.Ref{Frames: r.framesOf(t)}
				if !s.Projection.Empty() {
					ref = frames.Ref{}
				}
				dst.put(n, r.event(t, s.reduce(r, t)), ref)
				n++
			}
			c.start.visits -= s.visitsPerRecord()
			last = r.Version
			if b.next++; b.next == b.conflated.end() {
				c.endPass(r.Version)
			}
		}
	}
	if b.next >= b.end {
		// c.node was the newest node of the feed when the backlog was determined, so the
		// feed continues exactly where the backlog ends.
		c.readFeed()
	}
	return n
}

// groupFits reports whether the group at the start of records has at most room records. The records
// of a group have the same version.
func groupFits(records []*record, room int) bool {
	return len(records) <= room || records[room].Version != records[0].Version
}

// versionBefore returns the version up to which a cursor has seen everything once it has read all
// records before the given number. It returns 0 if no record with that number is retained.
func (l *Log) versionBefore(number uint64) listwatch.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number < l.records.first() || number >= l.records.next {
		return 0
	}
	return l.records.get(number).Version - 1
}

// pollFeed reads the feed into dst. hasEvents reports whether the caller's batch already has events
// before dst.
func (c *Cursor) pollFeed(dst batch, hasEvents bool) (n int) {
	for n < len(dst.events) {
		// Call closedWith first: if it reports that the log is closed, every record is already
		// in the feed after catchUp, so no event is missed.
		closed := c.feed.log.closedWith()
		c.feed.catchUp()
		next := c.node.next.Load()
		if next == nil {
			c.err, c.passEnd = closed, 0
			break
		}
		if next == cutLink {
			c.rejoin()
			break
		}
		if c.conflates && !c.isInPass(next, hasEvents || n > 0) {
			break
		}
		if (hasEvents || n > 0) && next.handle.version != c.node.handle.version && !next.groupFits(len(dst.events)-n) {
			break
		}
		r := next.handle.record.Load()
		if r == nil {
			c.err = fellBehind(c.feed.log.Stats().Oldest)
			break
		}
		c.node = next
		if r.Version > c.after && !c.skips(next) {
			e, ref := c.feed.event(next, r)
			dst.put(n, e, ref)
			n++
		}
	}
	return n
}

// groupFits reports whether the group of n has at most room nodes. The group is n and the nodes
// after n with the same version. A group that does not fit goes into the next batch, unless the
// batch is empty.
func (n *node) groupFits(room int) bool {
	for v := n.handle.version; n != nil && n != cutLink && n.handle.version == v; n = n.next.Load() {
		if room--; room < 0 {
			return false
		}
	}
	return true
}
