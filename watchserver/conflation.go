package watchserver

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/timers"
)

// A conflation delays the groups of events that a conflating Poller returns: a group begins no
// earlier than an interval after the end of a group that had an event. The driver of the stream
// owns it.
type conflation struct {
	interval time.Duration // immutable
	until    timers.Time   // the end of the pause, or zero if there is none
	sent     bool          // an event of the current group was sent
}

// isConflating reports whether w may skip superseded events.
func isConflating(w listwatch.Watcher) bool {
	p, ok := w.(listwatch.Poller)
	return ok && p.Progress().Conflates
}

// newConflation returns the conflation of a stream that reads w by q, or nil if it needs none.
func newConflation(q listwatch.Query, w listwatch.Watcher) *conflation {
	if !isConflating(w) {
		return nil
	}
	return &conflation{interval: q.Conflate}
}

// isPaused reports whether s sends no events yet.
func (s *stream) isPaused(now timers.Time) bool {
	c := s.conflation
	if c != nil && isDue(c.until, now) {
		c.until = 0
	}
	return c != nil && c.until != 0
}

// pauseAfterGroup begins a pause if a group has ended. n is the number of events just sent.
func (s *stream) pauseAfterGroup(n int) {
	c := s.conflation
	if c == nil {
		return
	}
	c.sent = c.sent || n > 0
	if c.sent && !s.poller.Progress().More {
		c.sent = false
		if c.interval > 0 {
			c.until = s.server.timers.Now().Add(c.interval)
		}
	}
}

// mayHaveMore reports whether more events may be pending, although Poll has just returned n events,
// fewer than there was room for.
func (s *stream) mayHaveMore(n int) bool {
	if s.conflation != nil && n > 0 {
		return true // those after the group
	}
	return s.poller.Progress().More
}
