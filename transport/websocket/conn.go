package websocket

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// closeWait is how long a peer has to answer a close frame before the connection is closed without.
const closeWait = 5 * time.Second

// errEnded is what a write gets after the end.
var errEnded = errors.New("the WebSocket has been closed")

// errWithin is what a read gets where the connection ends within a message. It is no EOF of any kind: nhooyr takes those for the end of a
// compressed message.
var errWithin = errors.New("the connection ended within a message")

// A conn is the connection beneath a library. What is read passes the gate; what is written goes out one write at a time, under
// a deadline for progress that is moved rarely, and not at all after a close frame. Deadlines that a library sets are ignored:
// gorilla leaves those of its control frames behind.
type conn struct {
	net.Conn // immutable

	// Immutable after construction.
	client bool
	tcp    *net.TCPConn // the connection where it can take a vector; else nil

	// Owned by the reader.
	gate   gate
	prefix []byte // read before the connection was taken over
	pong   []byte // the pong that is due; nil: none
	failed error  // what reading ended with, beneath the library

	writing turn
	ended   bool          // guarded by writing: a close frame is out, or a write has failed
	torn    error         // guarded by writing: what write has failed with
	held    *bytes.Buffer // guarded by writing: what the library has written since hold; nil: what it writes goes out at once

	deadline deadline
	sent     atomic.Int64 // bytes that the peer's side has taken
}

func newConn(c net.Conn, client bool, timeout time.Duration) *conn {
	w := &conn{Conn: c, client: client, writing: newTurn()}
	if timeout > 1 && !w.isTLS() {
		timeout /= 2
	}
	w.deadline.moving = connio.WriteDeadline{SetFunc: c.SetWriteDeadline, Timeout: timeout}
	w.tcp, _ = c.(*net.TCPConn)
	return w
}

// A turn is a mutex that is held during I/O. A goroutine that waits for a channel, unlike one that waits for a sync.Mutex, lets
// the fake time of a test pass.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take() { t <- struct{}{} }
func (t turn) pass() { <-t }

// free reports whether nobody had it just now.
func (t turn) free() bool { return len(t) == 0 }

// Read reads what the gate lets pass. Before it waits it answers the last ping: one of many that came together suffices
// (rfc6455#section-5.5.3), so that a flood of pings costs no more writes than reads.
func (c *conn) Read(p []byte) (int, error) {
	if c.pong != nil {
		_ = c.writeControl(appendControl(nil, opPong, c.pong, c.client))
		c.pong = nil
	}
	for c.failed == nil {
		n, err := c.readRaw(p)
		n, broken := c.gate.check(p[:n])
		switch {
		case broken != nil:
			c.failed = broken
		case err == io.EOF && c.gate.isWithin():
			c.failed = errWithin
		case err != nil:
			c.failed = err
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, c.failed
}

func (c *conn) readRaw(p []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(p, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Write is for the library, which hands whole frames or consecutive parts of one. After the end it swallows what comes: the
// library may still answer what the peer had sent before.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.take()
	defer c.writing.pass()
	switch {
	case c.ended:
		return len(p), nil
	case c.held != nil && c.held.Len()+len(p) <= maxHeld:
		return c.held.Write(p)
	}
	if err := c.done(c.writeBehind(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// writeControl writes one control frame.
func (c *conn) writeControl(frame []byte) error {
	c.writing.take()
	defer c.writing.pass()
	if c.ended {
		return errEnded
	}
	return c.done(c.writeBehind(frame))
}

// end writes a close frame; nothing is written after it (rfc6455#section-5.5.1).
func (c *conn) end(code closeCode, reason string) error {
	c.writing.take()
	defer c.writing.pass()
	if c.ended {
		return errEnded
	}
	c.ended = true
	return c.write(appendClose(nil, code, reason, c.client))
}

// done notes that a write has failed: the peer may have got a part of a frame.
func (c *conn) done(err error) error {
	if err != nil {
		c.ended, c.torn = true, err
	}
	return err
}

// cause returns what broke the connection, on its reader's goroutine; nil: nothing did.
func (c *conn) cause() error {
	c.writing.take()
	defer c.writing.pass()
	if c.failed != nil {
		return c.failed
	}
	return c.torn
}

// linger reads and drops what the peer is still sending: a connection closed over unread bytes is reset, which could eat
// the close frame that tells the peer why.
func (c *conn) linger() {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(closeWait))
	_, _ = io.Copy(io.Discard, c.Conn)
}

// cut closes the connection at once, also one that a TLS peer doesn't read from: without a close_notify.
func (c *conn) cut() {
	if t, ok := c.Conn.(*tls.Conn); ok {
		_ = t.NetConn().Close()
	}
	_ = c.Conn.Close()
}

// SetDeadline does nothing: the deadlines are the conn's.
func (c *conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing: the deadlines are the conn's.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing: the deadlines are the conn's.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
