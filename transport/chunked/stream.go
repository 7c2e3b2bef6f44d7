package chunked

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// Limits of the lean path.
const (
	// largeFrame is the smallest mean size of frames at which writev is cheaper than copying
	// them into one buffer.
	largeFrame = 4 << 10
	// maxVector is the maximum number of frames in one writev. The runtime keeps the
	// vector, 16 bytes per frame, for the lifetime of the connection.
	maxVector = 16
	// lingerTime is the time that the server waits for the client to close a finished
	// connection. If the server closed it earlier, the kernel could reset the connection
	// and discard bytes that the client has not received yet.
	lingerTime = time.Second
)

// A stream is a response on a hijacked connection. Its only goroutine is the one that calls serve.
// After a clean end the connection lingers on another goroutine, for lingerTime at most.
type stream struct {
	// Immutable after construction.
	conn   net.Conn
	vector bool // conn supports writev

	closed atomic.Bool // Close was called or the connection has failed
	done   connio.Done

	writing connio.Lock // held while conn is written
	// Owned by the holder of the lock writing.
	deadline connio.WriteDeadline
	coding   *transport.StreamCoding
}

func newStream(conn net.Conn, timeout time.Duration) *stream {
	_, vector := connio.TCP(conn)
	return &stream{
		conn: conn, vector: vector, writing: connio.NewLock(),
		deadline: connio.WriteDeadline{SetFunc: conn.SetWriteDeadline, Timeout: timeout},
	}
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
	if err := s.writeAll(frames); err != nil {
		s.reset()
		return connio.SendError(err)
	}
	return nil
}

func (s *stream) writeAll(frames [][]byte) error {
	if len(frames) == 1 {
		return s.write(frames[0])
	}
	if s.vector {
		total := 0
		for _, f := range frames {
			total += len(f)
		}
		if total >= largeFrame*len(frames) {
			return s.writeVectors(frames)
		}
	}
	return connio.WriteBatched(frames, s.write)
}

// write writes all of p. If the deadline expires but the client has accepted some bytes
// since the deadline was set, write extends the deadline. That has no effect with TLS,
// where an expired deadline breaks the connection.
func (s *stream) write(p []byte) error {
	s.deadline.Arm()
	for {
		n, err := s.conn.Write(p)
		if err == nil {
			return nil
		}
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		p = p[n:]
		s.deadline.Extend()
	}
}

func (s *stream) writeVectors(frames [][]byte) error {
	var vector [maxVector][]byte
	for len(frames) > 0 {
		n := copy(vector[:], frames)
		frames = frames[n:]
		s.deadline.Arm()
		for rest := net.Buffers(vector[:n]); ; s.deadline.Extend() {
			written, err := rest.WriteTo(s.conn) // removes the written bytes from rest
			if err == nil {
				break
			}
			if written == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
		}
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
	if end == transport.Abort || !s.writing.LockWithin(s.deadline.Timeout) {
		s.reset()
		return nil
	}
	defer s.writing.Unlock()
	if err := s.write(append(s.coding.Trailer(), "0\r\n\r\n"...)); err != nil {
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
