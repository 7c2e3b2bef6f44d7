package loop

import (
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// timers holds the times of the timeouts and pings of a connection, except for the times in
// scheduler.stalled and conn.halfClosed. One timer serves all of these times. The zero time means
// never.
type timers struct {
	timer         *time.Timer // calls conn.tick
	at            time.Time   // when timer fires
	settingsAckBy time.Time   // the client must have acknowledged the SETTINGS
	pingAckBy     time.Time   // the client must have acknowledged the PING
	received      uint64      // the bytes that the client had received when pingAckBy was set
	lastFrame     time.Time   // when the last frame arrived
	refuseAt      time.Time   // new streams are refused from then on
	idleSince     time.Time   // when the last stream has ended; zero while there are streams
}

// start starts the timer of a connection that begins now.
func (t *timers) start(now time.Time, tick func()) {
	t.timer = time.AfterFunc(time.Hour, tick)
	t.lastFrame, t.idleSince = now, now
}

// arm makes the timer fire at the given time or earlier.
func (t *timers) arm(at time.Time) {
	if t.at.IsZero() || at.Before(t.at) {
		t.at = at
		t.timer.Reset(time.Until(at))
	}
}

func (t *timers) stop() { t.timer.Stop() }

// expectAck records that a PING was sent, when the client had received that many bytes.
func (t *timers) expectAck(by time.Time, received uint64) {
	// The PING itself is no progress.
	t.pingAckBy, t.received = by, received+uint64(headerLen+len(keepalivePing))
}

// hasReceived reports whether the client, which has received that many bytes, has received any
// since the last call.
func (t *timers) hasReceived(bytes uint64) bool {
	before := t.received
	t.received = bytes
	return bytes > before
}

// isDue reports whether t has been reached. A zero t means never.
func isDue(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// arm makes tick run at the given time or earlier, unless the time is zero.
func (c *conn) arm(at time.Time) {
	if !at.IsZero() && c.phase != phaseDead {
		c.timers.arm(at)
	}
}

func (c *conn) armIdle() {
	if d := c.settings.idleTimeout; d > 0 && !c.timers.idleSince.IsZero() {
		c.arm(c.timers.idleSince.Add(d))
	}
}

// tick performs the actions that are due, and sets the timer for the next one.
func (c *conn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.timers.at = time.Time{}
	if c.phase == phaseDead {
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
	for st, until := range c.sched.stalled {
		if !st.isOpen() && isDue(until, now) {
			st.abort(http2.ErrCodeInternal, errStalled)
		}
	}
	for st, at := range c.halfClosed {
		if isDue(at, now) {
			st.resetUpload()
		}
	}
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
	if d <= 0 || !c.timers.pingAckBy.IsZero() || c.phase >= phaseCloses || now.Before(c.timers.lastFrame.Add(d)) {
		return
	}
	c.timers.expectAck(now.Add(c.settings.pingTimeout), connio.Acknowledged(c.nc))
	c.out.ping(false, keepalivePing)
	c.wakeWriter()
}

// isReceiving reports whether the client may still have to read what precedes a PING. A write in
// progress has a timeout of its own. Otherwise the client must have received bytes since the last
// call. With TLS a PING is longer, so that a client that takes it but does not answer gets one more
// ping timeout.
func (c *conn) isReceiving() bool {
	return c.writer.isBlocked() && c.settings.writeTimeout > 0 || c.timers.hasReceived(connio.Acknowledged(c.nc))
}

func (c *conn) rearm(now time.Time) {
	c.arm(c.timers.settingsAckBy)
	c.arm(c.timers.pingAckBy)
	c.arm(c.timers.refuseAt)
	for _, until := range c.sched.stalled {
		if isDue(until, now) { // waits for its turn, before which a window may become empty again
			until = now.Add(time.Second)
		}
		c.arm(until)
	}
	for _, at := range c.halfClosed {
		c.arm(at)
	}
	if d := c.settings.pingInterval; d > 0 && c.timers.pingAckBy.IsZero() && c.phase < phaseCloses {
		c.arm(c.timers.lastFrame.Add(d))
	}
	c.armIdle()
}
