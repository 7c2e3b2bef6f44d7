package chunked

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// Bounds of the lean path.
const (
	// largeFrame is from where on handing a frame to the kernel beats copying it first.
	largeFrame = 4 << 10
	// maxVector is how many frames go into one writev. The runtime keeps the vector with the connection for its life, 16
	// bytes for each, so it is small.
	maxVector = 16
	// lingerTime is how long a finished connection waits for the client to close it, so that no reset destroys the last
	// bytes on their way.
	lingerTime = time.Second
)

// A stream is a response on a connection that was taken over. Its only goroutine is readLoop, which ends with the connection: at
// once when the peer closes or the stream is cut, within lingerTime of a clean end.
type stream struct {
	// Immutable after construction.
	conn   net.Conn
	vector bool // conn can write many buffers with one system call
	done   chan struct{}

	closed   atomic.Bool // Close was called, or the connection broke
	doneOnce sync.Once

	writing connio.Lock // held while conn is written
	// Owned by the holder of writing.
	deadline connio.WriteDeadline
	coding   *transport.StreamCoding
}

func newStream(conn net.Conn, timeout time.Duration) *stream {
	_, vector := conn.(*net.TCPConn)
	return &stream{
		conn: conn, vector: vector, done: make(chan struct{}), writing: connio.NewLock(),
		deadline: connio.WriteDeadline{SetFunc: conn.SetWriteDeadline, Timeout: timeout},
	}
}

// readLoop waits for the peer to go away. A client has nothing more to say: a byte from it is an error, except while the
// connection lingers.
func (s *stream) readLoop() {
	var b [1]byte
	for {
		if _, err := s.conn.Read(b[:]); err != nil {
			break
		}
		if !s.closed.Load() {
			s.cut()
			return
		}
	}
	s.finish()
	s.conn.Close()
}

// finish closes done; nothing can be sent any more.
func (s *stream) finish() {
	s.closed.Store(true)
	s.doneOnce.Do(func() { close(s.done) })
}

// cut breaks the connection off.
func (s *stream) cut() {
	s.finish()
	connio.Reset(s.conn)
}

// Send is that of [transport.Sender].
func (s *stream) Send(frames [][]byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed.Load() {
		return connio.ErrSenderClosed
	}
	s.coding.Apply(frames)
	if err := s.writeAll(frames); err != nil {
		s.cut()
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

// write writes p as a whole. A peer that takes something before the deadline gets more time, which on TLS is in vain: there the
// first deadline that passes breaks the connection.
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
			written, err := rest.WriteTo(s.conn) // takes from rest what was written
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

// Close is that of [transport.Sender]. Finished and GoingAway return when the last chunk is written; the connection closes soon
// after.
func (s *stream) Close(end transport.End) error {
	if s.closed.Swap(true) {
		s.finish()
		return nil
	}
	if end == transport.Abort || !s.writing.LockWithin(s.deadline.Timeout) {
		s.cut()
		return nil
	}
	defer s.writing.Unlock()
	if err := s.write(append(s.coding.Trailer(), "0\r\n\r\n"...)); err != nil {
		s.cut()
		return connio.SendError(err)
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(lingerTime))
	closeWrite(s.conn)
	s.finish()
	return nil
}

// closeWrite tells the peer that nothing more comes, through TLS too.
func closeWrite(conn net.Conn) {
	type halfCloser interface{ CloseWrite() error }
	if c, ok := conn.(halfCloser); ok {
		_ = c.CloseWrite() // readLoop sees what is wrong
	}
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		if c, ok := t.NetConn().(halfCloser); ok {
			_ = c.CloseWrite()
		}
	}
}
