package memnet

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// A Conn is one end of a connection in memory. It is a [net.Conn] that can be closed by halves, like a [*net.TCPConn].
type Conn struct {
	// Immutable after construction.
	local, remote addr
	in, out       *half // out is the peer's in

	closing sync.Mutex
	closed  bool // guarded by closing
	abrupt  bool // guarded by closing; Close resets
}

var _ net.Conn = (*Conn)(nil)

// Pipe returns the two ends of a new connection with the default buffer.
func Pipe() (a, b *Conn) { return pipe(nextAddr(), nextAddr(), DefaultBuffer) }

func pipe(a, b addr, buffer int) (*Conn, *Conn) {
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	ab, ba := newHalf(buffer), newHalf(buffer)
	return &Conn{local: a, remote: b, in: ba, out: ab}, &Conn{local: b, remote: a, in: ab, out: ba}
}

// Read returns bytes of the peer; [io.EOF] once it has closed its writing side and everything is read.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.opError("read", err)
}

// Write copies p into the connection, and waits while the peer doesn't read and the buffer is full.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	if errors.Is(err, syscall.ECONNRESET) {
		// Bytes that come to an end that is closed are answered with a reset, which breaks both directions.
		c.in.reset()
	}
	return n, c.opError("write", err)
}

// opError dresses err up as package net does; [io.EOF] stays bare.
func (c *Conn) opError(op string, err error) error {
	if err == nil || isEOF(err) {
		return err
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite ends the direction to the peer: it reads what is there and then [io.EOF].
func (c *Conn) CloseWrite() error {
	if c.isClosed() {
		return c.opError("close", net.ErrClosed)
	}
	c.out.closeWriter(syscall.EPIPE)
	return nil
}

// Close gives the connection up. As with TCP, the peer sees a reset instead of the end, and loses what it had not read, where
// this end had not read everything or the peer goes on writing.
func (c *Conn) Close() error {
	if c.isAbrupt() {
		c.Reset()
		return nil
	}
	if !c.close() {
		return c.opError("close", net.ErrClosed)
	}
	if unread := c.in.closeReader(); unread {
		c.out.reset() // first, or else a peer that reads just now sees an end
	}
	c.out.closeWriter(net.ErrClosed)
	return nil
}

// SetLinger is that of [*net.TCPConn], as far as zero goes: with that, Close is Reset.
func (c *Conn) SetLinger(seconds int) error {
	c.closing.Lock()
	defer c.closing.Unlock()
	c.abrupt = seconds == 0
	return nil
}

func (c *Conn) isAbrupt() bool {
	c.closing.Lock()
	defer c.closing.Unlock()
	return c.abrupt && !c.closed
}

// Reset gives the connection up at once: the peer loses what it had not read and sees a connection reset.
func (c *Conn) Reset() {
	if c.close() {
		c.in.closeReader()
		c.in.reset()
		c.out.reset() // first, as in Close
		c.out.closeWriter(net.ErrClosed)
	}
}

// Stall makes the network between the ends go silent, or speak again: while it is stalled nothing that one end writes, nor that
// it closes, is seen by the other. Writers go on until the buffer is full.
func (c *Conn) Stall(stalled bool) {
	c.in.stall(stalled)
	c.out.stall(stalled)
}

// close reports whether the connection was open.
func (c *Conn) close() bool {
	c.closing.Lock()
	defer c.closing.Unlock()
	was := c.closed
	c.closed = true
	return !was
}

func (c *Conn) isClosed() bool {
	c.closing.Lock()
	defer c.closing.Unlock()
	return c.closed
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline makes reads, also one that waits, fail with [os.ErrDeadlineExceeded] from t on; the zero t is never.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.setDeadline(c.in, &c.in.readBy, t)
}

// SetWriteDeadline is the same for writes.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(c.out, &c.out.writeBy, t)
}

func (c *Conn) setDeadline(h *half, d *deadline, t time.Time) error {
	if c.isClosed() {
		return c.opError("set", net.ErrClosed)
	}
	h.setDeadline(d, t)
	return nil
}
