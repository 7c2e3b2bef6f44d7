package loop

import (
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

// A stream is small, because a million of them may be idle. So most of the data that only some
// streams need is behind pointers. The fields of a stream are guarded by the connection's mutex,
// except for the immutable ones.
type stream struct {
	// Immutable after construction.
	c  *conn
	id uint32

	remoteClosed bool // the client has sent END_STREAM
	place        place
	watched      bool // the response is a watch
	detached     bool // the watch outlives its handler
	// credit is the send window minus the client's initial window size, which may change.
	credit int64
	next   *stream       // the next stream in scheduler.ready or scheduler.blocked
	step   func()        // the function to call when the stream may send; see Watch.Go
	out    *outgoing     // data to send; nil if there is none
	ex     *exchange     // the request that a handler is serving; nil if none is
	err    error         // the reason why nothing more can be sent; nil while the stream is open
	onDone func()        // see Watch.OnDone
	stall  time.Duration // of a watch: the maximum time without a window; zero means no limit
	done   bool          // the watch has ended or Watch.Close was called
}

// window returns the number of bytes that the stream may send. It may be negative.
func (s *stream) window() int64 { return s.c.sched.streamWindow + s.credit }

// isOpen reports whether both the stream's window and the connection's window are open.
func (s *stream) isOpen() bool { return s.window() > 0 && s.c.sched.window > 0 }

// timeout returns the time for which the client may keep the stream's window empty; zero means no
// limit.
func (s *stream) timeout() time.Duration {
	if s.watched {
		return s.stall
	}
	return s.c.settings.stallTimeout
}

// enqueue makes the stream send when it is its turn.
func (s *stream) enqueue() {
	s.c.sched.add(s)
	s.c.wakeWriter()
}

// block makes the stream wait until its window and the connection's window are open.
func (s *stream) block() { s.c.arm(s.c.sched.block(s)) }

// unblock enqueues the stream if it has waited for its own window, and this window is open.
func (s *stream) unblock() {
	if s.c.sched.isWaiting(s) {
		s.enqueue()
	}
}

// run calls f, a step of the stream, without holding the mutex. The stream must not be in a queue.
func (s *stream) run(f func()) {
	s.place = placeStepping
	s.c.mu.Unlock()
	f()
	s.c.mu.Lock()
	s.place = placeNone
	if s.err == nil && (s.out != nil || s.step != nil) {
		s.enqueue()
	}
}

// writeHeaders sends a header block. The mutex is held from the encoding until the block is in the
// output, so that blocks are sent in the order in which they change the encoder's table.
func (s *stream) writeHeaders(status int, h http.Header, end bool) {
	c := s.c
	c.out.headers(s.id, c.encoder.encode(status, h), end, int(c.sched.frameSize))
	c.encoder.release()
}

// closeLocal ends the stream after END_STREAM was sent. If the client has not ended the stream yet,
// the stream becomes half-closed.
func (s *stream) closeLocal() {
	if s.remoteClosed {
		s.fail(errClosed)
		return
	}
	s.stop(errClosed)
	s.awaitEnd()
}

// reset sends RST_STREAM.
func (s *stream) reset(code http2.ErrCode) {
	c := s.c
	c.out.reset(s.id, code)
	if s.remoteClosed {
		return
	}
	window := c.settings.streamWindow
	if s.ex != nil {
		window = s.ex.body.window.open
	}
	c.cut.add(cutStream{s.id, window}, int(c.settings.streams))
}

// abort sends RST_STREAM and ends the stream. It has no effect after END_STREAM.
func (s *stream) abort(code http2.ErrCode, err error) {
	if s.err == nil {
		s.terminate(code, err)
	}
}

// terminate sends RST_STREAM and ends the stream, which must be in conn.streams.
func (s *stream) terminate(code http2.ErrCode, err error) {
	c := s.c
	s.reset(code)
	if c.settings.countError != nil {
		c.settings.countError("stream_" + code.String())
	}
	s.fail(err)
	c.wakeWriter()
}

// fail ends the stream without sending RST_STREAM.
func (s *stream) fail(err error) {
	c := s.c
	switch _, isHalfClosed := c.halfClosed[s]; {
	case s.err == nil:
		s.stop(err)
	case !isHalfClosed:
		return
	}
	c.halfClosed.remove(s)
	c.removeStream(s)
}

// stop ends the part of the stream that sends.
func (s *stream) stop(err error) {
	c := s.c
	s.err = err
	if o := s.out; o != nil {
		s.out = nil
		if o.done != nil {
			close(o.done)
		}
	}
	c.sched.endStall(s)
	c.sched.leave(s)
	if f := s.step; f != nil {
		s.step = nil
		go f() // f finds out that the stream has ended
	}
	if s.ex != nil {
		s.ex.fail(err)
	}
	if s.watched {
		s.finishWatch()
	}
}

func (s *stream) abortWatch() {
	if !s.done {
		s.abort(http2.ErrCodeInternal, errAborted)
	}
}

// finishWatch ends the watch, and calls the function that OnDone has registered.
func (s *stream) finishWatch() {
	if s.done {
		return
	}
	s.done = true
	if f := s.onDone; f != nil {
		s.onDone = nil
		go f()
	}
}
