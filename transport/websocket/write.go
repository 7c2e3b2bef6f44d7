package websocket

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

const (
	// minVector is the mean size of frames from which it is cheaper not to copy them.
	minVector = 4 << 10
	// maxVector is how many frames one writev takes: the runtime keeps the vector for as long as the connection lives.
	maxVector = 32
)

// writeFrames writes whole frames: large ones as a vector where the connection can take it, everything else copied together. On
// TLS each slice of a vector would be a record and a system call of its own.
func (c *conn) writeFrames(frames [][]byte) error {
	c.writing.take()
	defer c.writing.pass()
	if c.ended {
		return errEnded
	}
	total := 0
	for _, f := range frames {
		total += len(f)
	}
	if c.tcp != nil && total >= minVector*len(frames) {
		return c.done(c.writeVector(frames))
	}
	return c.done(connio.WriteBatched(frames, c.write))
}

// maxHeld is how many bytes of a library are held; what is more is written.
const maxHeld = 64 << 10

// helds are the buffers of conns that hold: few do at a time.
var helds = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// hold has what the library writes wait for release, so that many messages go out in one write. The library must write whole frames
// between the two.
func (c *conn) hold() {
	c.writing.take()
	defer c.writing.pass()
	c.held = helds.Get().(*bytes.Buffer)
}

// release writes what was held.
func (c *conn) release() error {
	c.writing.take()
	defer c.writing.pass()
	held := c.held
	c.held = nil
	defer helds.Put(held)
	defer held.Reset()
	if c.ended || held.Len() == 0 {
		return c.torn
	}
	return c.done(c.write(held.Bytes()))
}

// writeBehind writes p, behind what is held.
func (c *conn) writeBehind(p []byte) error {
	if c.held != nil && c.held.Len() > 0 {
		defer c.held.Reset()
		if err := c.write(c.held.Bytes()); err != nil {
			return err
		}
	}
	return c.write(p)
}

// write writes p.
func (c *conn) write(p []byte) error {
	return c.progress(func() (int64, error) {
		n, err := c.Conn.Write(p)
		p = p[n:]
		return int64(n), err
	})
}

func (c *conn) writeVector(frames [][]byte) error {
	for len(frames) > 0 {
		n := min(len(frames), maxVector)
		vector := net.Buffers(frames[:n])
		if err := c.progress(func() (int64, error) { return vector.WriteTo(c.tcp) }); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

// progress calls write, which goes on where it stopped, for as long as the peer takes a byte now and then: the deadline is half
// the time-out, and the second that passes without a byte ends it. That is once to twice the time-out after the last byte.
func (c *conn) progress(write func() (int64, error)) error {
	c.deadline.arm(false)
	for idle := 0; ; {
		n, err := write()
		c.sent.Add(n)
		if err == nil {
			return nil
		}
		idle++
		if n > 0 {
			idle = 0
		}
		if idle == 2 || c.isTLS() || !errors.Is(err, os.ErrDeadlineExceeded) || !c.deadline.arm(true) {
			return err
		}
	}
}

// isTLS reports whether a write that was late is beyond repair. The deadline of such a connection is the whole time-out, and
// what is written at once is small.
func (c *conn) isTLS() bool {
	_, ok := c.Conn.(*tls.Conn)
	return ok
}

// A deadline bounds the writes of a connection, until it is made final.
type deadline struct {
	mu sync.Mutex

	// Guarded by mu.
	moving connio.WriteDeadline
	final  bool
}

// arm gives a write that begins its time. late is true where the time has passed in spite of progress; arm reports whether there is
// more to be had.
func (d *deadline) arm(late bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.final:
		return !late
	case late:
		d.moving.Extend()
	default:
		d.moving.Arm()
	}
	return true
}

// hurry bounds every write, also one that waits, by now and at the latest in wait. The first call counts.
func (d *deadline) hurry(wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.final {
		d.final = true
		_ = d.moving.SetFunc(time.Now().Add(wait)) // a connection that is closed has no writes to bound
	}
}
