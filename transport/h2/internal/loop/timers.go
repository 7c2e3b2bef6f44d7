package loop

import (
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// tick performs the actions that are due, and sets the timer for the next one.
func (c *conn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.timers.at = time.Time{}
	if c.dead {
		return
	}
	if isDue(c.timers.settingsAckBy, now) {
		c.out.goAway(c.lastID, http2.ErrCodeSettingsTimeout, "")
		c.close()
		return
	}
	if isDue(c.timers.pingAckBy, now) {
		if !c.isReceiving() {
			c.disconnect(errConn)
			return
		}
		c.timers.pingAckBy = now.Add(c.settings.pingTimeout)
	}
	if isDue(c.timers.refuseAt, now) {
		c.refuse()
	}
	c.resetStalled(now)
	c.resetHalfClosed(now)
	c.keepAlive(now)
	if d := c.settings.idleTimeout; d > 0 && !c.timers.idleSince.IsZero() && isDue(c.timers.idleSince.Add(d), now) {
		c.timers.idleSince = time.Time{}
		c.goAway()
	}
	c.rearm(now)
}

// keepAlive sends a PING if nothing has arrived for the ping interval.
func (c *conn) keepAlive(now time.Time) {
	d := c.settings.pingInterval
	if d <= 0 || !c.timers.pingAckBy.IsZero() || c.closing || now.Before(c.lastFrame.Add(d)) {
		return
	}
	c.timers.pingAckBy = now.Add(c.settings.pingTimeout)
	// The PING itself is no progress.
	c.timers.received = connio.Acknowledged(c.nc) + uint64(headerLen+len(keepalivePing))
	c.out.ping(false, keepalivePing)
	c.wakeWriter()
}

// isReceiving reports whether the client may still have to read what precedes a PING. A write in
// progress has a timeout of its own. Otherwise the client must have received bytes since the last
// call. With TLS a PING is longer, so that a client that takes it but does not answer gets one more
// ping timeout.
func (c *conn) isReceiving() bool {
	if (c.inWrite || c.waits) && c.settings.writeTimeout > 0 {
		return true
	}
	before := c.timers.received
	c.timers.received = connio.Acknowledged(c.nc)
	return c.timers.received > before
}

// resetStalled resets streams whose client has kept a window empty for too long.
func (c *conn) resetStalled(now time.Time) {
	for st, until := range c.stalled {
		if !st.isOpen() && isDue(until, now) {
			st.abort(http2.ErrCodeInternal, errStalled)
		}
	}
}

func (c *conn) rearm(now time.Time) {
	next := func(at time.Time) {
		if !at.IsZero() {
			c.armAt(at)
		}
	}
	next(c.timers.settingsAckBy)
	next(c.timers.pingAckBy)
	next(c.timers.refuseAt)
	for _, until := range c.stalled {
		if isDue(until, now) { // waits for its turn, before which a window may become empty again
			until = now.Add(time.Second)
		}
		next(until)
	}
	for _, at := range c.halfClosed {
		next(at)
	}
	if d := c.settings.pingInterval; d > 0 && c.timers.pingAckBy.IsZero() && !c.closing {
		next(c.lastFrame.Add(d))
	}
	if !c.timers.idleSince.IsZero() {
		c.armIdle()
	}
}

// isDue reports whether t has been reached. A zero t means never.
func isDue(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }
