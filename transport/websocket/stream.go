package websocket

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// maxInbound bounds the messages that the server ignores. Pages send some to keep their
// connections alive. After a message of more bytes the server closes with code 1009, and after
// more bytes within a minute, including the headers of the frames, with 1008.
const maxInbound = 64 << 10

// A serverConn is a server's end of a WebSocket, implemented by a library.
type serverConn interface {
	// serve reads until the connection ends, answers pings, and ignores messages. If the
	// client has sent a close frame that is not answered yet, serve returns the code of the
	// answer; otherwise it returns zero.
	serve() (answer closeCode)
	// send writes messages, one for each frame. The frames have the envelope that this library
	// requires. Only one send runs at a time.
	send(frames [][]byte) error
	// ping sends a ping, and reports whether the client is alive. It may wait for the answer
	// until the timeout has passed, or report at the next call that the answer is missing.
	ping(timeout time.Duration) (alive bool)
	// release frees the resources of the library after the connection has been closed.
	release()
}

// A stream is a watch being served. Its only goroutine is the one that calls read.
type stream struct {
	// Immutable after construction.
	conn         *conn
	library      serverConn
	pingInterval time.Duration // no pings if negative
	closeTimeout time.Duration // the maximum time that Close waits

	sending connio.Lock // held while messages or a close frame are written

	done   connio.Done
	closed atomic.Bool // Close was called
	// closing is set when read ends the connection with a close frame. Then nothing else may close
	// the connection.
	closing atomic.Bool

	sentBeforePing int64 // conn.sent at the last ping; owned by the goroutine of pingTimer

	mu        sync.Mutex
	pingTimer *time.Timer // guarded by mu; nil after finish
}

var _ transport.Sender = (*stream)(nil)

// newStream returns a stream over c and starts the pings.
func newStream(c *conn, l serverConn, o transport.Options) *stream {
	s := &stream{
		conn: c, library: l, pingInterval: o.PingInterval, closeTimeout: o.WriteTimeout,
		sending: connio.NewLock(),
	}
	if s.closeTimeout < 0 {
		s.closeTimeout = transport.DefaultWriteTimeout
	}
	if s.pingInterval > 0 {
		s.mu.Lock()
		s.pingTimer = time.AfterFunc(s.pingInterval, s.ping)
		s.mu.Unlock()
	}
	return s
}

// Send implements [transport.Sender].
func (s *stream) Send(frames [][]byte) error {
	if len(frames) == 0 {
		return nil
	}
	err := errClosed
	if !s.done.IsSet() {
		err = s.send(frames)
	}
	if err == nil {
		return nil
	}
	s.finish()
	s.cut()
	return connio.SendError(err)
}

func (s *stream) send(frames [][]byte) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.library.send(frames)
}

// writeClose writes a close frame after the messages being sent.
func (s *stream) writeClose(code closeCode, reason string) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.conn.writeClose(code, reason)
}

// Close implements [transport.Sender]. The caller of read waits for the answer of the
// client and closes the connection.
func (s *stream) Close(end transport.End) error {
	if s.closed.Swap(true) {
		return nil
	}
	s.finish()
	if s.closing.Load() {
		return nil
	}
	code := closeNormal
	switch end {
	case transport.GoingAway:
		code = closeGoingAway
	case transport.Abort:
		s.conn.cut()
		return nil
	}
	s.conn.deadline.setFinal(s.closeTimeout)
	if s.writeClose(code, "") != nil {
		s.cut()
		return nil
	}
	_ = s.conn.Conn.SetReadDeadline(time.Now().Add(closeWait))
	return nil
}

// finish stops the pings and sets done.
func (s *stream) finish() {
	s.mu.Lock()
	if s.pingTimer != nil {
		s.pingTimer.Stop()
		s.pingTimer = nil
	}
	s.mu.Unlock()
	s.done.Set()
}

// cut closes the connection at once, unless read is sending the client a close frame, which
// takes at most closeWait.
func (s *stream) cut() {
	if !s.closing.Load() {
		s.conn.cut()
	}
}

// read serves the connection until it ends, and then closes it, as the server must after the
// close frames were exchanged (rfc6455#section-7.1.1).
func (s *stream) read() {
	answer := s.library.serve()
	violation, isViolation := errors.AsType[*protocolError](s.conn.readErr)
	// Set closing before finish sets done, because a sender that sees done must not cut the
	// connection.
	s.closing.Store(isViolation || answer != 0 || s.conn.readErr == nil)
	s.finish()
	switch {
	case isViolation:
		s.conn.deadline.setFinal(closeWait)
		_ = s.writeClose(violation.code, violation.reason)
		s.conn.linger()
	case answer != 0:
		s.conn.deadline.setFinal(closeWait)
		_ = s.writeClose(answer, "")
	case s.conn.readErr == nil:
		s.conn.linger() // the library has rejected a frame and sent a close frame
	}
	s.library.release()
	_ = s.conn.Close()
}

// minProgress is the number of bytes that a client must accept between two pings to count as
// alive without a pong. A pong is late if the client must first read everything written before
// the ping, which may be megabytes in the buffers on the way.
const minProgress = connio.MaxWrite

// ping runs once per pingInterval, on the goroutine of pingTimer.
func (s *stream) ping() {
	start := time.Now()
	// A send in progress has a deadline of its own, so no ping is necessary.
	alive := len(s.sending) > 0 || s.library.ping(s.pingInterval)
	sent := s.conn.sent.Load()
	alive = alive || sent-s.sentBeforePing >= minProgress
	s.sentBeforePing = sent
	if s.done.IsSet() {
		return // do not cut the connection: the close frame may be on its way
	}
	if !alive {
		s.finish()
		s.cut()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pingTimer != nil {
		s.pingTimer.Reset(max(0, s.pingInterval-time.Since(start)))
	}
}
