package websocket

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// maxInbound is the longest message that is told it is not wanted (close 1008) rather than too big (close 1009). Neither is read.
const maxInbound = 4 << 10

// A session is a server's end in the hands of a library.
type session interface {
	// serve reads until the connection is at its end, and answers pings. echo is the code of a close frame that the peer has
	// sent and that has not been answered; zero: there is none.
	serve() (echo closeCode)
	// send writes messages, in the form of the session's envelope.
	send(frames [][]byte) error
	// ping asks for a sign of life, which is due within d. It reports whether the peer is alive: it may say so at once and find
	// out at the next call, or wait for the answer.
	ping(d time.Duration) (alive bool)
	// end writes a close frame between two messages.
	end(code closeCode, reason string) error
	// release gives back what the library holds.
	release()
}

// A stream is a watch being served. One goroutine, in read, belongs to it and ends with the connection.
type stream struct {
	// Immutable after construction.
	conn     *conn
	session  session
	interval time.Duration // between pings; negative: none
	timeout  time.Duration // how long Close may wait
	done     chan struct{}

	ending  sync.Once
	closed  sync.Once
	leaving atomic.Bool // read says goodbye, and closes the connection

	sent int64 // by conn before the last ping; owned by the timer

	mu    sync.Mutex
	timer *time.Timer // guarded by mu; nil after the end
}

var _ transport.Sender = (*stream)(nil)

// newStream starts to serve.
func newStream(c *conn, s session, o transport.Options) *stream {
	w := &stream{conn: c, session: s, interval: o.PingInterval, timeout: o.WriteTimeout, done: make(chan struct{})}
	if w.timeout < 0 {
		w.timeout = transport.DefaultWriteTimeout
	}
	if w.interval > 0 {
		w.mu.Lock()
		w.timer = time.AfterFunc(w.interval, w.ping)
		w.mu.Unlock()
	}
	go w.read()
	return w
}

// Send writes frames.
func (s *stream) Send(frames [][]byte) error {
	if len(frames) == 0 {
		return nil
	}
	err := errEnded
	select {
	case <-s.done:
	default:
		err = s.session.send(frames)
	}
	if err == nil {
		return nil
	}
	s.gone()
	s.cut()
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "send", Err: err}
}

// Close ends the stream. The goroutine that reads waits for the peer's answer and closes the connection.
func (s *stream) Close(end transport.End) error {
	s.closed.Do(func() { s.close(end) })
	return nil
}

func (s *stream) close(end transport.End) {
	s.gone()
	if s.leaving.Load() {
		return
	}
	code := closeNormal
	switch end {
	case transport.GoingAway:
		code = closeGoingAway
	case transport.Abort:
		s.conn.cut()
		return
	}
	s.conn.deadline.hurry(s.timeout)
	if s.session.end(code, "") != nil {
		s.cut()
		return
	}
	_ = s.conn.Conn.SetReadDeadline(time.Now().Add(closeWait))
}

// gone tells everyone that the stream is over.
func (s *stream) gone() {
	s.ending.Do(func() {
		close(s.done)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.timer != nil {
			s.timer.Stop()
			s.timer = nil
		}
	})
}

// cut closes the connection at once, but not while the peer is told why: that takes closeWait at most.
func (s *stream) cut() {
	if !s.leaving.Load() {
		s.conn.cut()
	}
}

// read serves the connection until its end and closes it: after a close frame the server is the one who does
// (rfc6455#section-7.1.1).
func (s *stream) read() {
	echo := s.session.serve()
	v, broken := errors.AsType[*violation](s.conn.failed)
	// Before gone: whoever sends gives up then, and must not take the connection away.
	s.leaving.Store(broken || echo != 0 || s.conn.failed == nil)
	s.gone()
	switch {
	case broken:
		s.conn.deadline.hurry(closeWait)
		_ = s.session.end(v.code, v.reason)
		s.conn.linger()
	case echo != 0:
		s.conn.deadline.hurry(closeWait)
		_ = s.session.end(echo, "")
	case s.conn.failed == nil:
		s.conn.linger() // the library didn't like something, and has said so
	}
	s.session.release()
	_ = s.conn.Close()
}

// busy is how much a peer must take in the interval between two pings for it to count as alive without a pong. A pong waits
// until the peer has read all that was written before the ping, which may be megabytes in the buffers on the way.
const busy = connio.MaxWrite

// ping runs once an interval, on the timer's goroutine.
func (s *stream) ping() {
	start := time.Now()
	alive := s.session.ping(s.interval)
	sent := s.conn.sent.Load()
	alive = alive || sent-s.sent >= busy
	s.sent = sent
	select {
	case <-s.done:
		return // ended meanwhile: the close frame may be on its way
	default:
	}
	if !alive {
		s.gone()
		s.cut()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Reset(max(0, s.interval-time.Since(start)))
	}
}
