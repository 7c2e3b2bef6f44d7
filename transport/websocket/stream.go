package websocket

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

const (
	// closeWait is the time that a client has to answer a close frame, or to read it, before the
	// connection is closed.
	closeWait = 5 * time.Second
	// readBuffer is the size of the buffer for frames of the client, which are rare and small.
	readBuffer = 128
	// minProgress is the number of bytes that a client must accept between two pings to count as
	// alive without a pong. A pong is late if the client must first read everything written before
	// the ping, which may be megabytes in the buffers on the way.
	minProgress = connio.MaxWrite
)

// A stream is a watch being served. Its only goroutine is the one that calls serve.
type stream struct {
	// Immutable after open.
	conn    connection
	deflate bool
	pings   *time.Timer

	early []byte // the bytes that the client sent with the handshake; owned by serve

	done   connio.Done
	closed atomic.Bool // Close was called
	// closing is set when serve ends the connection with a close frame. Then nothing else may close
	// the connection.
	closing atomic.Bool
	sent    atomic.Int64 // the number of bytes written
	pinged  atomic.Bool  // a ping is not answered yet

	writing connio.Lock
	// Guarded by the lock writing.
	writer connio.FrameWriter
	ended  bool // a close frame was written, or a write failed

	sentAtPing int64 // the value of sent at the last ping; owned by ping
}

var _ transport.Sender = (*stream)(nil)

// newStream returns a stream over c. early holds the bytes that the client has sent with the
// handshake.
func newStream(c connection, early []byte, deflate bool, o transport.Options) *stream {
	return &stream{
		conn: c, early: early, deflate: deflate,
		writer: connio.NewFrameWriter(c, o.WriteTimeoutOrDefault()),
	}
}

// open writes the response to the handshake and starts the pings. If the write fails, serve finds
// that the connection is closed.
func (s *stream) open(response []byte, o transport.Options) {
	_ = s.Send([][]byte{response})
	s.pings = wswatch.StartPings(o.PingIntervalOrDefault(), s.ping)
}

// Send implements [transport.Sender].
func (s *stream) Send(frames [][]byte) error {
	if s.done.IsSet() {
		return connio.ErrSenderClosed // do not wait for a close frame that is being written
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.ended {
		return connio.ErrSenderClosed
	}
	if len(frames) == 0 {
		return nil
	}
	n := 0
	for _, f := range frames {
		n += len(f)
	}
	if err := s.writer.WriteFrames(frames); err != nil {
		s.ended = true
		s.end()
		return connio.SendError(err)
	}
	s.sent.Add(int64(n))
	return nil
}

// Close implements [transport.Sender]. The caller of serve waits for the answer of the client and
// closes the connection.
func (s *stream) Close(end transport.End) error {
	if s.closed.Swap(true) {
		return nil
	}
	code := wswatch.CloseNormal
	if end == transport.GoingAway {
		code = wswatch.CloseGoingAway
	}
	s.done.Set()
	if s.closing.Load() {
		return nil
	}
	if end == transport.Abort || s.writeClose(s.writer.Timeout(), code, "") != nil {
		s.end()
		return nil
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(closeWait))
	return nil
}

// end ends the stream. It closes the connection at once, unless serve is sending the client a close
// frame, which takes at most closeWait.
func (s *stream) end() {
	s.done.Set()
	if !s.closing.Load() {
		connio.Cut(s.conn)
	}
}

// serve reads until the connection ends, and then closes it, as the server must after the close
// frames were exchanged (rfc6455#section-7.1.1). It answers pings and ignores messages.
func (s *stream) serve() {
	err := s.read()
	closed, isClosed := errors.AsType[*wswatch.CloseFrame](err)
	violation, isViolation := errors.AsType[*wswatch.Violation](err)
	// Set closing before done: a sender that sees done may call Close, which cuts the connection
	// unless closing is set. The close frame below would then be lost.
	s.closing.Store(isClosed || isViolation)
	s.done.Set()
	s.pings.Stop()
	switch {
	case isClosed:
		_ = s.writeClose(closeWait, closed.Code, "")
	case isViolation:
		_ = s.writeClose(closeWait, violation.Code, violation.Reason)
		connio.Linger(s.conn, closeWait)
	}
	_ = s.conn.Close()
}

// read reads until the connection ends. It returns the reason: the close frame of the client, a
// violation of the protocol, or an error of the connection.
func (s *stream) read() error {
	frames := newFrameReader(true, s.deflate, wswatch.MaxInbound)
	var inbound wswatch.Inbound
	buffer, rest := make([]byte, readBuffer), s.early
	s.early = nil
	for {
		var pong []byte // answering the last of several pings is enough: rfc6455#section-5.5.3
		for len(rest) > 0 {
			var p part
			var err error
			if p, rest, err = frames.next(rest); err != nil {
				return err
			}
			switch p.op {
			case opText, opBinary:
				err = inbound.Add(p.frameSize)
			case opPing:
				pong = appendControl(nil, opPong, p.payload, false)
			case opPong:
				s.pinged.Store(false)
			case opClose:
				err = closeError(p.payload)
			}
			if err != nil {
				return err
			}
		}
		if pong != nil {
			_ = s.Send([][]byte{pong})
		}
		n, err := s.conn.Read(buffer)
		if n == 0 && err != nil {
			return err
		}
		rest = buffer[:n]
	}
}

// writeClose waits for the frames that are being written, and then writes a close frame. After a
// close frame, nothing else is written (rfc6455#section-5.5.1).
func (s *stream) writeClose(timeout time.Duration, code int, reason string) error {
	if !s.writing.LockWithin(timeout) {
		return connio.ErrSenderClosed
	}
	defer s.writing.Unlock()
	if s.ended {
		return nil
	}
	s.ended = true
	if timeout >= 0 {
		_ = s.conn.SetWriteDeadline(time.Now().Add(timeout))
	}
	_, err := s.conn.Write(appendClose(nil, code, reason, false))
	return err
}

// ping sends a ping. If the client has not answered the previous ping, it ends the stream instead.
// It returns false if the stream has ended.
func (s *stream) ping() bool {
	if s.done.IsSet() {
		return false // do not cut the connection: the close frame may be on its way
	}
	sent := s.sent.Load()
	switch {
	case s.writing.IsHeld(): // no ping is needed: the write in progress has a deadline
	case s.pinged.Swap(true) && sent-s.sentAtPing < minProgress:
		s.end()
		return false
	default:
		_ = s.Send([][]byte{appendControl(nil, opPing, nil, false)})
	}
	s.sentAtPing = sent
	return true
}
