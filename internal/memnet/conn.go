package memnet

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// A Conn is one end of an in-memory connection. It is a [net.Conn] that supports half close,
// like a [*net.TCPConn].
type Conn struct {
	// Immutable after construction.
	local, remote addr
	in, out       *direction // each end's out is the other end's in

	mu           sync.Mutex
	closed       bool // guarded by mu
	resetOnClose bool // guarded by mu
}

var _ net.Conn = (*Conn)(nil)

// Pipe returns the two ends of a new connection with the default buffer.
func Pipe() (a, b *Conn) { return pipe(nextAddr(), nextAddr(), DefaultBuffer) }

func pipe(a, b addr, buffer int) (*Conn, *Conn) {
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	ab, ba := newDirection(buffer), newDirection(buffer)
	return &Conn{local: a, remote: b, in: ba, out: ab}, &Conn{local: b, remote: a, in: ab, out: ba}
}

// Read returns bytes that the peer has written. It returns [io.EOF] once the peer has closed
// its writing side and all bytes have been read.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.opError("read", err)
}

// Write copies p into the buffer of the connection. It blocks while the buffer is full.
func (c *Conn) Write(p []byte) (int, error) {
	if c.isClosed() { // Close may not have closed c.out yet
		return 0, c.opError("write", net.ErrClosed)
	}
	n, err := c.out.write(p)
	if errors.Is(err, syscall.ECONNRESET) {
		// A closed end responds to bytes with a reset, which breaks both directions.
		c.in.reset()
	}
	return n, c.opError("write", err)
}

// opError wraps err as package net does. [io.EOF] is not wrapped.
func (c *Conn) opError(op string, err error) error {
	if err == nil || isEOF(err) {
		return err
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite closes the writing side. The peer can read the bytes written so far, and then
// [io.EOF].
func (c *Conn) CloseWrite() error {
	if c.isClosed() {
		return c.opError("close", net.ErrClosed)
	}
	c.out.closeWriter(syscall.EPIPE)
	return nil
}

// Close closes the connection. As with TCP, if this end has unread bytes, or if the peer
// continues to write, the peer receives a reset instead of io.EOF and loses the bytes that
// it has not read.
func (c *Conn) Close() error {
	if c.resetsOnClose() {
		c.Reset()
		return nil
	}
	if !c.close() {
		return c.opError("close", net.ErrClosed)
	}
	if unread := c.in.closeReader(); unread {
		c.out.reset() // before closeWriter, so that a concurrent reader never sees a clean end
	}
	c.out.closeWriter(net.ErrClosed)
	return nil
}

// SetLinger implements the case of [*net.TCPConn.SetLinger] that tests need: after
// SetLinger(0), Close resets the connection.
func (c *Conn) SetLinger(seconds int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetOnClose = seconds == 0
	return nil
}

// Acknowledged returns the number of bytes that the other end has read.
func (c *Conn) Acknowledged() uint64 {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.out.taken
}

func (c *Conn) resetsOnClose() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resetOnClose && !c.closed
}

// Reset resets the connection. The peer loses the bytes that it has not read and gets
// ECONNRESET.
func (c *Conn) Reset() {
	if c.close() {
		c.in.closeReader()
		c.in.reset()
		c.out.reset() // before closeWriter, as in Close
		c.out.closeWriter(net.ErrClosed)
	}
}

// Stall(true) stops the network between the two ends, and Stall(false) restores it. While
// the network is stalled, neither end receives bytes from the other end or notices that the
// other end has closed. Writes succeed until the buffer is full.
func (c *Conn) Stall(stalled bool) {
	c.in.stall(stalled)
	c.out.stall(stalled)
}

// close marks the connection as closed and reports whether it was open.
func (c *Conn) close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasOpen := !c.closed
	c.closed = true
	return wasOpen
}

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets the read and the write deadline.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline makes pending and future reads fail with [os.ErrDeadlineExceeded] from t on.
// A zero t means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.setDeadline(c.in, &c.in.readBy, t)
}

// SetWriteDeadline makes pending and future writes fail with [os.ErrDeadlineExceeded] from t
// on. A zero t means no deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(c.out, &c.out.writeBy, t)
}

func (c *Conn) setDeadline(dir *direction, d *deadline, t time.Time) error {
	if c.isClosed() {
		return c.opError("set", net.ErrClosed)
	}
	dir.setDeadline(d, t)
	return nil
}
