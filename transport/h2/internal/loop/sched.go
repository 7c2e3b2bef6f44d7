package loop

import "time"

// enqueue adds st to the queue of ready streams, unless it is in the queue or its step is running.
// A stream that waits for the connection's window keeps its place, unless only END_STREAM is left,
// which needs no window. enqueue also makes sure that the writer runs.
func (c *conn) enqueue(st *stream) {
	if o := st.out; st.place == placeBlocked && o != nil && o.end && o.size() == 0 {
		c.leave(st)
	}
	if st.place == placeNone {
		st.place = placeReady
		c.ready.push(st)
	}
	c.wakeWriter()
}

// leave removes st from the queue of streams that wait for the connection's window.
func (c *conn) leave(st *stream) {
	if st.place == placeBlocked {
		st.place = placeNone
		c.blocked.remove(st)
	}
}

// next removes and returns the stream whose turn it is, or returns nil. The streams that have
// waited for the connection's window come first, as long as it is open.
func (c *conn) next() *stream {
	if st := c.blocked.head; st != nil && c.sendWindow > 0 {
		c.leave(st)
		return st
	}
	if c.ready.head == nil {
		return nil
	}
	st := c.ready.pop()
	st.place = placeNone
	return st
}

// isFree reports whether no stream waits for its turn.
func (c *conn) isFree() bool { return c.ready.head == nil && c.blocked.head == nil }

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
	until, ok := c.stalled[st]
	if timeout := st.timeout(); !ok && timeout > 0 {
		until = time.Now().Add(timeout)
	}
	c.setStall(st, until)
	if st.window() > 0 {
		st.place = placeBlocked
		c.blocked.push(st)
	}
}

func (c *conn) setStall(st *stream, until time.Time) {
	if c.stalled == nil {
		c.stalled = make(map[*stream]time.Time)
	}
	c.stalled[st] = until
	if !until.IsZero() {
		c.armAt(until)
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

// unblock enqueues a stream that has waited for its own window, if this window is open.
func (c *conn) unblock(st *stream) {
	if _, ok := c.stalled[st]; ok && st.place == placeNone && st.window() > 0 {
		c.enqueue(st)
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
