package loop

import (
	"sync"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A writer writes the output of a connection. The goroutine that runs conn.write exists only while
// there is something to write.
type writer struct {
	frames connio.FrameWriter // owned by that goroutine
	// write is conn.write. It is evaluated once, because each evaluation allocates.
	write func()

	// Guarded by the connection's mutex.
	running bool
	inWrite bool      // the writer waits for a write of the network connection
	drained sync.Cond // signals that the writer took the output, or the end of the connection
	waits   bool      // the reader waits for drained
}

func (w *writer) init(c *conn) {
	timeout := c.settings.writeTimeout
	if timeout == 0 {
		timeout = -1
	}
	w.frames = connio.NewFrameWriter(c.nc, timeout)
	w.write = c.write
	w.drained.L = &c.mu
}

// wake starts the goroutine unless it runs.
func (w *writer) wake() {
	if !w.running {
		w.running = true
		go w.write() // ends when nothing is left to write
	}
}

// waitUntilDrained makes the reader wait until the writer takes the output.
func (w *writer) waitUntilDrained() {
	w.waits = true
	w.drained.Wait()
	w.waits = false
}

// isBlocked reports whether the client has to read before the connection can continue.
func (w *writer) isBlocked() bool { return w.inWrite || w.waits }

// send writes o without the mutex.
func (w *writer) send(o *output) (err error) {
	w.drained.Broadcast()
	w.inWrite = true
	w.drained.L.Unlock()
	if len(o.refs) == 0 {
		err = w.frames.Write(o.buf)
	} else {
		err = w.frames.WriteVector(o.vectors())
	}
	o.release()
	w.drained.L.Lock()
	w.inWrite = false
	return err
}

// wakeWriter starts the writer unless it runs or the connection is closed.
func (c *conn) wakeWriter() {
	if c.phase != phaseDead {
		c.writer.wake()
	}
}

// write writes the output, and calls the functions passed to Watch.Go, until nothing is left to do.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.phase != phaseDead {
		if st := c.fill(); st != nil {
			f := st.step
			st.step = nil
			st.run(f)
			continue
		}
		if c.out.isEmpty() {
			if c.phase == phaseCloses {
				// The alert of TLS may have to wait for the client.
				c.mu.Unlock()
				c.closeWrite()
				c.mu.Lock()
			}
			break
		}
		o := c.out.next()
		if err := c.writer.send(&o); err != nil {
			c.disconnect(err)
		}
	}
	c.out.release()
	c.writer.running = false
}

// fill moves pending data of ready streams to the output, one stream after another, until the
// output is full or no stream is ready. If the next stream has a step to run instead, fill returns
// that stream.
func (c *conn) fill() *stream {
	for c.out.room() > 0 {
		st := c.sched.next()
		switch {
		case st == nil:
			return nil
		case st.err != nil:
		case st.out != nil:
			st.sendPending()
		case st.step == nil:
		case !st.isOpen():
			st.block()
		default:
			c.sched.endStall(st)
			return st
		}
	}
	return nil
}
