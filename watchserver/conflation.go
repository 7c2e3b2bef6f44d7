package watchserver

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/timers"
)

// A conflatingPoller is a Poller that may skip superseded events. It reads in passes. The cursors
// of internal/history are conflatingPollers.
type conflatingPoller interface {
	IsConflating() bool
	// IsInPass reports whether more events of the current pass may be pending.
	IsInPass() bool
}

// A conflation delays the passes of a conflatingPoller: a pass begins no earlier than an interval
// after the end of a pass that has sent something. The driver of the stream owns it.
type conflation struct {
	interval time.Duration // immutable
	until    timers.Time   // the end of the pause, or zero if there is none
	sent     bool          // the current pass has sent something
}

// isConflating reports whether w may skip superseded events.
func isConflating(w listwatch.Watcher) bool {
	p, ok := w.(conflatingPoller)
	return ok && p.IsConflating()
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

// pauseAfterPass begins a pause if a pass has ended. n is the number of events just sent.
func (s *stream) pauseAfterPass(n int) {
	c := s.conflation
	if c == nil {
		return
	}
	c.sent = c.sent || n > 0
	if c.sent && !s.poller.(conflatingPoller).IsInPass() {
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
		return true // those after the pass
	}
	p, ok := s.poller.(statePoller)
	return ok && p.IsCatchingUp()
}
