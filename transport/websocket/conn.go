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

// closeWait is the time that a peer has to answer a close frame before the connection is closed
// without an answer.
const closeWait = 5 * time.Second

// errClosed is the error of a write after a close frame or after a failed write.
var errClosed = errors.New("the WebSocket is closed")

// errCutInMessage is the error of a read if the connection ends within a message. It does not
// wrap io.EOF or io.ErrUnexpectedEOF, because nhooyr mistakes these two for the end of a
// compressed message.
var errCutInMessage = errors.New("the connection ended within a message")

// A conn is the connection that a library reads and writes. It validates what is read. It
// performs one write at a time, each limited by a write deadline, and none after a close frame.
// It ignores the deadlines that a library sets, because gorilla does not remove the deadlines
// of its control frames.
type conn struct {
	net.Conn // immutable

	// Immutable after construction.
	isClient bool
	tcp      *net.TCPConn // nil unless the connection is plain TCP, which supports writev

	// Owned by the reader.
	validator validator
	readAhead []byte // bytes that were read before the connection was hijacked
	pong      []byte // the payload of the pong to send; nil if no ping is unanswered
	readErr   error  // the error that ended reading

	writing connio.Lock
	// Guarded by the lock writing.
	ended    bool          // a close frame was written, or a write failed
	writeErr error         // the error of a failed write
	buffer   *bytes.Buffer // holds the writes of the library since startBuffering; otherwise nil

	deadline writeDeadline
	sent     atomic.Int64 // the number of bytes written
}

func newConn(c net.Conn, isClient bool, writeTimeout time.Duration) *conn {
	w := &conn{Conn: c, isClient: isClient, writing: connio.NewLock()}
	if writeTimeout > 1 && !w.isTLS() {
		writeTimeout /= 2 // see writeWhileProgress
	}
	w.deadline.moving = connio.WriteDeadline{SetFunc: c.SetWriteDeadline, Timeout: writeTimeout}
	w.tcp, _ = c.(*net.TCPConn)
	return w
}

// Read reads validated bytes. Before it blocks, it answers the last ping. Answering one of
// several pings is enough (rfc6455#section-5.5.3), so a flood of pings causes no more writes
// than reads.
func (c *conn) Read(p []byte) (int, error) {
	if c.pong != nil {
		_ = c.writeControl(appendControl(nil, opPong, c.pong, c.isClient))
		c.pong = nil
	}
	for c.readErr == nil {
		n, err := c.readUnvalidated(p)
		n, invalid := c.validator.validate(p[:n])
		switch {
		case invalid != nil:
			c.readErr = invalid
		case err == io.EOF && c.validator.isUnfinished():
			c.readErr = errCutInMessage
		case err != nil:
			c.readErr = err
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, c.readErr
}

func (c *conn) readUnvalidated(p []byte) (int, error) {
	if len(c.readAhead) > 0 {
		n := copy(p, c.readAhead)
		c.readAhead = c.readAhead[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Write is called by the library, with whole frames or with consecutive parts of one frame.
// After a close frame or a failed write, it discards p and reports success, because the library
// may still answer frames that the peer sent earlier.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	switch {
	case c.ended:
		return len(p), nil
	case c.buffer != nil && c.buffer.Len()+len(p) <= maxBuffer:
		return c.buffer.Write(p)
	}
	if err := c.recordError(c.writeAfterBuffer(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// writeControl writes one control frame.
func (c *conn) writeControl(frame []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return errClosed
	}
	return c.recordError(c.writeAfterBuffer(frame))
}

// writeClose writes a close frame. No write follows it (rfc6455#section-5.5.1).
func (c *conn) writeClose(code closeCode, reason string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return errClosed
	}
	c.ended = true
	return c.write(appendClose(nil, code, reason, c.isClient))
}

// recordError ends writing if err is not nil, because the peer may have received part of a
// frame. It returns err.
func (c *conn) recordError(err error) error {
	if err != nil {
		c.ended, c.writeErr = true, err
	}
	return err
}

// failure returns the error that broke the connection, or nil if it is intact. Only the reader
// may call it.
func (c *conn) failure() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.readErr != nil {
		return c.readErr
	}
	return c.writeErr
}

// linger reads and discards what the peer still sends. Closing a connection with unread bytes
// resets it, and a reset could destroy the close frame on its way to the peer.
func (c *conn) linger() {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(closeWait))
	_, _ = io.Copy(io.Discard, c.Conn)
}

// cut closes the connection at once. With TLS it sends no close_notify, which would block if
// the peer does not read.
func (c *conn) cut() {
	if t, ok := c.Conn.(*tls.Conn); ok {
		_ = t.NetConn().Close()
	}
	_ = c.Conn.Close()
}

// SetDeadline does nothing, because conn itself sets the deadlines of the connection.
func (c *conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing, because conn itself sets the deadlines of the connection.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing, because conn itself sets the deadlines of the connection.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
