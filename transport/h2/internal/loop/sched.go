package loop

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// enqueue adds st to the queue of ready streams, unless it is in the queue or its step is running.
// It also makes sure that the writer runs.
func (c *conn) enqueue(st *stream) {
	if !st.ready && !st.stepping {
		st.ready = true
		c.ready.push(st)
	}
	c.wakeWriter()
}

// wakeWriter starts the writer unless it runs. Its goroutine ends when nothing is left to write.
func (c *conn) wakeWriter() {
	if !c.writing && !c.dead {
		c.writing = true
		go c.writeFunc()
	}
}

// block makes st wait until its window and the connection's window are open. If st was blocked
// before and has not sent anything since, the earlier time of its reset still applies.
func (c *conn) block(st *stream) {
	s, ok := c.stalled[st]
	if timeout := st.timeout(); !ok && timeout > 0 {
		s.until = time.Now().Add(timeout)
	}
	s.blocked = true
	c.setStall(st, s)
}

func (c *conn) setStall(st *stream, s stall) {
	if c.stalled == nil {
		c.stalled = make(map[*stream]stall)
	}
	c.stalled[st] = s
	if s.blocked && !s.until.IsZero() {
		c.armAt(s.until)
	}
}

// endStall ends the stall of st, after st has sent something or has ended.
func (c *conn) endStall(st *stream) {
	if c.stalled == nil {
		return
	}
	if delete(c.stalled, st); len(c.stalled) == 0 {
		c.stalled = nil // release the map, because it never shrinks
	}
}

// unblock enqueues a blocked stream if its window and the connection's window are open.
func (c *conn) unblock(st *stream) {
	s := c.stalled[st]
	if !s.blocked || st.window() <= 0 || c.sendWindow <= 0 {
		return
	}
	s.blocked = false
	c.stalled[st] = s
	c.enqueue(st)
}

// unblockAll enqueues the blocked streams in a random order, so that each gets its share of small
// windows. The order of a map is not random enough: a key that follows a gap in the table comes
// first more often.
func (c *conn) unblockAll() {
	all := slices.Collect(maps.Keys(c.stalled))
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, st := range all {
		c.unblock(st)
	}
}

// armAt makes tick run at the given time or earlier.
func (c *conn) armAt(at time.Time) {
	if c.dead || !c.timers.at.IsZero() && !at.Before(c.timers.at) {
		return
	}
	c.timers.at = at
	c.timer.Reset(time.Until(at))
}

func (c *conn) armIdle() {
	if c.settings.idleTimeout > 0 {
		c.armAt(c.timers.idleSince.Add(c.settings.idleTimeout))
	}
}
