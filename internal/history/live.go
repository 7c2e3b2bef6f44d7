package history

import (
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
)

// live is the last stage of a cursor of a log. It follows the feed of the selection.
type live struct {
	// Immutable after construction.
	feed *feed
	pass *pass // nil if the cursor returns every event

	// Owned by the reader.
	after listwatch.Version // the cursor returns no events up to this version
	node  *node             // the last node read

	entry  wakeEntry // guarded by the mutex of feed.wakeups
	closed atomic.Bool
}

// begin returns the stage in which a cursor starts, once the start version has been reached. The
// mutex of the log must be held.
func (l *live) begin(s *start) (stage, error) {
	log := l.feed.log
	l.after = log.version()
	defer l.feed.lock()()
	l.node = l.feed.chain.newest
	switch {
	case s.initialEvents:
		first := l.feed.snapshot(log.state.snapshot(), l.after, s)
		first.next = l
		if s.bookmarks {
			at := listwatch.State{Version: l.after, ID: l.feed.stateID}
			first.next = &synced{of: log.description, at: at, since: first.since, next: l}
		}
		return first, nil
	case !s.atVersion:
	case !log.records.canStart(s.version):
		return l, expired(s.version, log.records.floor)
	case s.version >= l.feed.chain.floor.handle.version:
		l.after = s.version
		l.node = l.feed.chain.find(l.after)
	default:
		l.after = s.version
		return &backlog{live: l, next: log.records.numberAfter(l.after), end: log.records.next}, nil
	}
	return l, nil
}

func (l *live) read(b batch) (batch, stage, error) {
	for !b.isFull() {
		// Call closedWith first: if it reports that the log is closed, every record is already
		// in the feed after catchUp, so no event is missed.
		closed := l.feed.log.closedWith()
		l.feed.catchUp()
		next := l.node.next.Load()
		switch {
		case next == nil:
			return b, l, closed
		case next == cutLink:
			s, err := l.rejoin()
			return b, s, err
		case l.pass != nil && next.handle.version > l.pass.end:
			return b, l, nil
		case b.n > 0 && next.handle.version != l.node.handle.version && !next.groupFits(b.room()):
			return b, l, nil
		}
		r := next.handle.record.Load()
		if r == nil {
			return b, l, fellBehind(l.feed.log.Stats().Oldest)
		}
		l.node = next
		if r.Version > l.after && !(l.pass != nil && l.pass.skips(next)) {
			b.put(l.feed.event(next, r))
		}
	}
	return b, l, nil
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

// rejoin returns the stage that reads the records in place of the nodes that the chain has dropped
// before l has read them. If the log has dropped the records as well, rejoin returns an error.
func (l *live) rejoin() (stage, error) {
	log, skipped := l.feed.log, uint64(l.node.skipped)
	log.mu.Lock()
	defer log.mu.Unlock()
	unread := l.node.handle.number + skipped
	if skipped == 0 || unread < log.records.first() {
		return l, fellBehind(log.records.floor)
	}
	defer l.feed.lock()()
	l.after = max(l.after, log.records.get(unread).Version-1)
	l.node = l.feed.chain.newest
	return &backlog{live: l, next: unread, end: log.records.next}, nil
}

func (l *live) progress() listwatch.Progress {
	return listwatch.Progress{State: listwatch.State{Version: l.position(), ID: l.feed.stateID}}
}

// position returns the version up to which l has returned all events.
func (l *live) position() listwatch.Version {
	// Load the revision first, because every event up to it that concerns l is then in the feed.
	revision := l.feed.log.revision.Version()
	l.feed.catchUp()
	switch next := l.node.next.Load(); next {
	case nil:
		return max(revision, l.after, l.node.handle.version)
	case cutLink:
		unread := l.node.handle.number + uint64(l.node.skipped)
		return max(l.feed.log.versionBefore(unread), l.after, max(l.node.handle.version, 1)-1)
	default:
		return max(l.after, next.handle.version-1)
	}
}

func (l *live) arm(wake func()) bool { return l.feed.wakeups.arm(l, wake) }

// isReady reports whether read has an event or an error to return.
func (l *live) isReady() bool {
	return l.closed.Load() || l.node.next.Load() != nil || l.feed.log.closedWith() != nil
}

func (l *live) isClosed() bool { return l.closed.Load() }

func (l *live) close() {
	if l.closed.Swap(true) {
		return
	}
	log, wake := l.feed.log, l.feed.wakeups.disarm(l)
	log.mu.Lock()
	wait := log.startWaits[l]
	delete(log.startWaits, l)
	log.feeds.leave(l.feed, time.Now())
	log.mu.Unlock()
	if wait != nil {
		wake = wait.cancel()
	}
	if wake != nil {
		wake()
	}
}
