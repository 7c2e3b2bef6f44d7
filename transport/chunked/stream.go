package chunked

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// lingerTime is the time that the server waits for the client to close a finished connection. If
// the server closed it earlier, the kernel could reset the connection and discard bytes that the
// client has not received yet.
const lingerTime = time.Second

// A stream is a response on a hijacked connection. Its only goroutine is the one that calls serve.
// After a clean end the connection lingers on another goroutine, for lingerTime at most.
type stream struct {
	// Immutable after construction.
	conn net.Conn

	closed atomic.Bool // Close was called or the connection has failed
	done   connio.Done

	writing connio.Lock // held while conn is written
	// Owned by the holder of the lock writing.
	writer connio.FrameWriter
	coding *transport.StreamCoding
}

func newStream(conn net.Conn, timeout time.Duration) *stream {
	return &stream{conn: conn, writer: connio.NewFrameWriter(conn, timeout)}
}

// serve waits until the client closes the connection or the stream is closed. A byte from the
// client is a violation of the protocol.
func (s *stream) serve() {
	_, err := s.conn.Read(make([]byte, 1))
	switch {
	case s.closed.Load():
		go s.linger()
	case err == nil:
		s.reset()
	default:
		s.finish()
		s.conn.Close()
	}
}

// linger closes the connection after a clean end, when the client has closed it or lingerTime has
// passed. It discards what the client sends.
func (s *stream) linger() {
	s.writing.Lock() // Close may still be writing the last chunk
	_ = s.conn.SetReadDeadline(time.Now().Add(lingerTime))
	s.writing.Unlock()
	_, _ = io.Copy(io.Discard, s.conn)
	s.conn.Close()
}

// finish ends the stream.
func (s *stream) finish() {
	s.closed.Store(true)
	s.done.Set()
}

// reset ends the stream and resets the connection.
func (s *stream) reset() {
	s.finish()
	connio.Reset(s.conn)
}

// Send implements [transport.Sender].
func (s *stream) Send(frames [][]byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed.Load() {
		return connio.ErrSenderClosed
	}
	s.coding.Apply(frames)
	if err := s.writer.WriteFrames(frames); err != nil {
		s.reset()
		return connio.SendError(err)
	}
	return nil
}

// Close implements [transport.Sender]. Unless the parameter end is Abort, Close writes the last
// chunk. The connection is closed soon afterwards.
func (s *stream) Close(end transport.End) error {
	if s.closed.Swap(true) {
		s.finish()
		return nil
	}
	if end == transport.Abort || !s.writing.LockWithin(s.writer.Timeout()) {
		s.reset()
		return nil
	}
	defer s.writing.Unlock()
	if err := s.writer.Write(append(s.coding.Trailer(), "0\r\n\r\n"...)); err != nil {
		s.reset()
		return connio.SendError(err)
	}
	closeWrite(s.conn)
	_ = s.conn.SetReadDeadline(longAgo) // makes serve return
	s.finish()
	return nil
}

var longAgo = time.Unix(1, 0)

// closeWrite closes the writing side of conn and, with TLS, of the underlying connection.
func closeWrite(conn net.Conn) {
	type halfCloser interface{ CloseWrite() error }
	if c, ok := conn.(halfCloser); ok {
		_ = c.CloseWrite() // linger handles the failure
	}
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		if c, ok := t.NetConn().(halfCloser); ok {
			_ = c.CloseWrite()
		}
	}
}
