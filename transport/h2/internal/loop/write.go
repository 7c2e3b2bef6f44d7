package loop

// write writes the output, and calls the functions passed to Watch.Go, until nothing is left to do.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.dead {
		if st := c.fill(); st != nil {
			f := st.step
			st.step = nil
			c.step(st, f)
			continue
		}
		if c.out.isEmpty() {
			if c.closing {
				// The alert of TLS may have to wait for the client.
				c.mu.Unlock()
				c.closeWrite()
				c.mu.Lock()
			}
			break
		}
		o := c.out.next()
		c.drained.Broadcast()
		c.inWrite = true
		c.mu.Unlock()
		err := c.writeOut(&o)
		o.release()
		c.mu.Lock()
		c.inWrite = false
		if err != nil {
			c.disconnect(err)
		}
	}
	c.out.release()
	c.writing = false
}

// fill moves pending data of ready streams to the output, one stream after another, until the
// output is full or no stream is ready. If the next stream has a step to run instead, fill returns
// that stream.
func (c *conn) fill() *stream {
	for c.out.room() > 0 {
		st := c.next()
		switch {
		case st == nil:
			return nil
		case st.err != nil:
		case st.out != nil:
			c.turn(st)
		case st.step == nil:
		case !st.isOpen():
			c.block(st)
		default:
			c.endStall(st)
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
		if st.out == o { // emit has not closed the stream
			st.out = nil
		}
		if o.done != nil && st.err == nil {
			close(o.done)
		}
		if st.step != nil {
			c.enqueue(st)
		}
	case !st.isOpen():
		c.block(st)
	default:
		c.enqueue(st)
	}
}

// step calls f, a step of st, without holding the mutex. st must not be in a queue.
func (c *conn) step(st *stream, f func()) {
	st.place = placeStepping
	c.mu.Unlock()
	f()
	c.mu.Lock()
	st.place = placeNone
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
