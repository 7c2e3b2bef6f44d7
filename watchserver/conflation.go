package watchserver

import (
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/timers"
)

// A conflation delays the passes of a conflating Poller. After a pass with an event, the next pass
// begins no earlier than one interval later. The driver of the stream owns the conflation.
type conflation struct {
	interval time.Duration // immutable
	until    timers.Time   // the end of the pause, or zero if there is none
	sent     bool          // an event of the current pass was sent
}

// isConflating reports whether w may skip superseded events.
func isConflating(w listwatch.Watcher) bool {
	p, ok := w.(listwatch.Poller)
	return ok && p.Progress().Conflates
}

// newConflation returns the conflation of a stream that reads w with the query q, or nil if the
// stream needs none.
func newConflation(q listwatch.Query, w listwatch.Watcher) *conflation {
	if !isConflating(w) {
		return nil
	}
	return &conflation{interval: q.Conflate}
}

// isPaused reports whether the stream sends no events yet. A nil conflation has no pauses.
func (c *conflation) isPaused(now timers.Time) bool {
	if c == nil {
		return false
	}
	if isDue(c.until, now) {
		c.until = 0
	}
	return c.until != 0
}

// pausedUntil returns the end of the pause, or zero if there is none.
func (c *conflation) pausedUntil() timers.Time {
	if c == nil {
		return 0
	}
	return c.until
}

// sentEvents begins a pause if a pass has ended. n is the number of events just sent, and more is
// true if the pass continues.
func (c *conflation) sentEvents(n int, more bool, clock *timers.Queue) {
	c.sent = c.sent || n > 0
	if c.sent && !more {
		c.sent = false
		if c.interval > 0 {
			c.until = clock.Now().Add(c.interval)
		}
	}
}
