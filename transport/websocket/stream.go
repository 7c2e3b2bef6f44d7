package websocket

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

const (
	// closeWait is the time that a client has to answer a close frame, or to take it, before the
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
	transport.Conn
	// Immutable after open.
	conn   net.Conn
	tunnel connio.Tunnel // conn, if it is a stream of HTTP/2; otherwise nil
	pings  *time.Timer

	early []byte // the bytes that the client sent with the handshake; owned by serve
	// reply is the close frame with which serve ends the stream, set before it calls Close.
	reply atomic.Pointer[wswatch.CloseFrame]

	writer connio.FrameWriter // owned by the Conn

	deflate    bool          // immutable after open
	writing    atomic.Bool   // WriteFrames is running
	pinged     atomic.Bool   // a ping is not answered yet
	sent       atomic.Uint32 // the number of bytes written, modulo 2^32
	sentAtPing uint32        // the value of sent at the last ping; owned by ping
}

var _ transport.Link = (*stream)(nil)

// newStream returns a stream over c. early holds the bytes that the client has sent with the
// handshake.
func newStream(c net.Conn, early []byte, deflate bool, o transport.Options) *stream {
	timeout := o.WriteTimeoutOrDefault()
	s := &stream{conn: c, early: early, deflate: deflate, writer: connio.NewFrameWriter(c, timeout)}
	s.tunnel, _ = c.(connio.Tunnel)
	// All watchers share the compressed messages, so a connection has no compression state.
	s.Init(s, timeout, transport.Encoder{})
	return s
}

// open writes the response to the handshake and starts the pings. If the write fails, serve finds
// that the connection is closed.
func (s *stream) open(response []byte, o transport.Options) {
	s.Open(response)
	s.pings = wswatch.StartPings(o.PingIntervalOrDefault(), s.ping)
}

func (s *stream) WriteFrames(frames [][]byte) (err error) {
	if len(frames) == 0 {
		return nil
	}
	n := 0
	for _, f := range frames {
		n += len(f)
	}
	s.writing.Store(true)
	if s.tunnel != nil {
		s.writer.Arm()
		err = s.tunnel.WriteFrames(frames)
	} else {
		err = s.writer.WriteFrames(frames)
	}
	s.sent.Add(uint32(n))
	s.writing.Store(false)
	return err
}

func (s *stream) Interrupt() error {
	connio.Cut(s.conn)
	return nil
}

// End implements [transport.Link]. A clean end is a close frame, after which nothing else is
// written (rfc6455#section-5.5.1). serve waits for the answer of the client and closes the
// connection.
func (s *stream) End(end transport.End, _ []byte) error {
	if f := s.reply.Load(); f != nil {
		// serve has set a deadline for the write, and closes the connection.
		if end != transport.Abort {
			_, _ = s.conn.Write(appendClose(nil, f.Code, f.Reason, false))
		}
		return nil
	}
	code := wswatch.CloseNormal
	if end == transport.GoingAway {
		code = wswatch.CloseGoingAway
	}
	if end == transport.Abort || s.writer.Write(appendClose(nil, code, "", false)) != nil {
		return s.Interrupt()
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(closeWait))
	return nil
}

// serve reads until the connection ends, and then closes it, as the server must after the close
// frames were exchanged (rfc6455#section-7.1.1). It answers pings and ignores messages.
func (s *stream) serve() {
	err := s.read()
	closed, isClosed := errors.AsType[*wswatch.CloseFrame](err)
	violation, isViolation := errors.AsType[*wswatch.Violation](err)
	switch {
	case isClosed:
		s.answer(wswatch.CloseFrame{Code: closed.Code})
	case isViolation:
		s.answer(wswatch.CloseFrame{Code: violation.Code, Reason: violation.Reason})
		connio.Linger(s.conn)
	default:
		s.Disconnect()
	}
	s.pings.Stop()
	_ = s.conn.Close()
}

// answer closes the stream with a close frame, or waits for a close in progress, which also writes
// one. A Send in progress has closeWait to finish.
func (s *stream) answer(f wswatch.CloseFrame) {
	s.reply.Store(&f)
	_ = s.conn.SetWriteDeadline(time.Now().Add(closeWait))
	_ = s.Close(transport.Finished)
	_ = s.Wait()
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
				err = inbound.AddControl()
			case opPong:
				s.pinged.Store(false)
				err = inbound.AddControl()
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

// ping sends a ping. If the client has not answered the previous ping, it ends the stream instead.
// It returns false if the stream has ended.
func (s *stream) ping() bool {
	sent := s.sent.Load()
	switch {
	case s.writing.Load(): // no ping is needed: the write in progress has a deadline
	case s.pinged.Swap(true) && sent-s.sentAtPing < minProgress:
		_ = s.Close(transport.Abort)
		return false
	default:
		if s.Send([][]byte{appendControl(nil, opPing, nil, false)}) != nil {
			return false
		}
	}
	s.sentAtPing = sent
	return true
}
