package chunked

import (
	"net"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// lingerTime is the time that the server waits for the client to close a finished connection. If
// the server closed it earlier, the kernel could reset the connection and discard bytes that the
// client has not received yet.
const lingerTime = connio.LingerTime

// A stream is a response on a hijacked connection. Its only goroutine is the one that calls serve.
// After a clean end the connection lingers on another goroutine, for lingerTime at most.
type stream struct {
	transport.Conn
	conn               net.Conn
	connio.FrameWriter // owned by the Conn
}

var _ transport.Link = (*stream)(nil)

func newStream(conn net.Conn, timeout time.Duration, encoder transport.Encoder) *stream {
	s := &stream{conn: conn, FrameWriter: connio.NewFrameWriter(conn, timeout)}
	s.Init(s, timeout, encoder)
	return s
}

// serve waits until the client closes the connection or the stream is closed. A byte from the
// client is a violation of the protocol.
func (s *stream) serve() {
	_, err := s.conn.Read(make([]byte, 1))
	switch {
	case !s.Disconnect():
		go s.linger()
	case err == nil:
		connio.Reset(s.conn)
	default:
		s.conn.Close()
	}
}

// linger closes the connection after a clean end, when the client has closed it or lingerTime has
// passed. It discards what the client sends.
func (s *stream) linger() {
	_ = s.Wait() // Close may still be writing the last chunk
	connio.Linger(s.conn)
	s.conn.Close()
}

func (s *stream) Interrupt() error {
	connio.Reset(s.conn)
	return nil
}

// End implements [transport.Link]. A clean end is the last chunk. The connection is closed soon
// afterwards.
func (s *stream) End(end transport.End, trailer []byte) error {
	if end == transport.Abort {
		return s.Interrupt()
	}
	if err := s.Write(append(trailer, "0\r\n\r\n"...)); err != nil {
		connio.Reset(s.conn)
		return connio.SendError(err)
	}
	connio.CloseWrite(s.conn)
	_ = s.conn.SetReadDeadline(connio.LongAgo) // makes serve return
	return nil
}
