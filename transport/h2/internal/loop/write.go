package loop

import "time"

// A queue holds the streams that have something to send, in the order of their turns.
type queue struct{ head, tail *stream }

func (q *queue) push(st *stream) {
	if q.tail == nil {
		q.head = st
	} else {
		q.tail.next = st
	}
	q.tail = st
}

func (q *queue) pop() *stream {
	st := q.head
	if q.head = st.next; q.head == nil {
		q.tail = nil
	}
	st.next = nil
	return st
}

// enqueue gives st a turn, and makes sure that the writer runs.
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

// block takes st out of turn until its window or the connection's opens.
func (c *conn) block(st *stream) {
	if c.blocked == nil {
		c.blocked = make(map[*stream]time.Time)
	}
	var until time.Time
	if timeout := st.timeout(); timeout > 0 {
		until = time.Now().Add(timeout)
		c.armAt(until)
	}
	c.blocked[st] = until
}

// unblock gives st a turn if both windows are open.
func (c *conn) unblock(st *stream) {
	if _, ok := c.blocked[st]; !ok || st.window() <= 0 || c.sendWindow <= 0 {
		return
	}
	if delete(c.blocked, st); len(c.blocked) == 0 {
		c.blocked = nil // a map never shrinks
	}
	c.enqueue(st)
}

func (c *conn) unblockAll() {
	for st := range c.blocked {
		c.unblock(st)
	}
}

// write writes the output and calls the streams' functions until nothing is left.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.dead {
		if st := c.fill(); st != nil {
			c.runStep(st)
			continue
		}
		if c.out.isEmpty() {
			if c.closing {
				c.closeWrite()
			}
			break
		}
		o := c.out
		c.out = output{}
		c.mu.Unlock()
		err := c.writeOut(&o)
		o.release()
		c.mu.Lock()
		if err != nil {
			c.disconnect(err)
		}
	}
	c.out.release()
	c.writing = false
}

// fill gives streams their turns until the output is full or no stream is ready. If it is the turn
// of a stream's function, fill returns that stream.
func (c *conn) fill() *stream {
	for c.ready.head != nil && c.out.room() > 0 {
		st := c.ready.pop()
		st.ready = false
		switch {
		case st.err != nil:
		case st.out != nil:
			c.turn(st)
		case st.step == nil:
		case st.window() <= 0 || c.sendWindow <= 0:
			c.block(st)
		default:
			return st
		}
	}
	return nil
}

// turn sends pending data of st.
func (c *conn) turn(st *stream) {
	o := st.out
	switch {
	case st.emit(o):
		if st.out == o { // not closed
			st.out = nil
		}
		if o.done != nil && st.err == nil {
			close(o.done)
		}
		if st.step != nil {
			c.enqueue(st)
		}
	case st.window() <= 0 || c.sendWindow <= 0:
		c.block(st)
	default:
		c.enqueue(st)
	}
}

// runStep calls the function of st without the mutex.
func (c *conn) runStep(st *stream) {
	f := st.step
	st.step, st.stepping = nil, true
	c.mu.Unlock()
	f()
	c.mu.Lock()
	st.stepping = false
	if st.err == nil && (st.out != nil || st.step != nil) {
		c.enqueue(st)
	}
}

// writeOut writes o.
func (c *conn) writeOut(o *output) error {
	if len(o.refs) == 0 {
		return c.writer.Write(o.buf)
	}
	return c.writer.WriteVector(o.vectors())
}
