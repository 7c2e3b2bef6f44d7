package loop

import (
	"golang.org/x/net/http2"
)

// quantum is the number of bytes that a stream may send before the next stream may send.
const quantum = 16 << 10

// outgoing is data that waits for other streams, for space in the output, or for a window.
type outgoing struct {
	frames [][]byte
	shared bool          // the frames no longer change
	end    bool          // END_STREAM follows
	done   chan struct{} // closed when nothing is left or the stream has failed; may be nil
}

// size returns the number of bytes that are left.
func (o *outgoing) size() int {
	n := 0
	for _, f := range o.frames {
		n += len(f)
	}
	return n
}

// take moves n bytes to out.
func (o *outgoing) take(out *output, n int, vector bool) {
	for n > 0 {
		f := o.frames[0]
		m := min(len(f), n)
		if vector && o.shared && m >= largeFrame {
			out.reference(f[:m])
		} else {
			out.copy(f[:m])
		}
		n -= m
		if m < len(f) {
			o.frames[0] = f[m:]
		} else {
			o.frames = o.frames[1:]
		}
	}
	for len(o.frames) > 0 && len(o.frames[0]) == 0 {
		o.frames = o.frames[1:]
	}
}

// send sends frames, and then END_STREAM if end is true. It keeps the data that cannot be sent at
// once. If wait is true, send returns when everything has been sent. If wait is false or shared is
// true, the frames must never change again. Large shared frames are written without a copy.
func (s *stream) send(frames [][]byte, end, wait, shared bool) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.sendLocked(frames, end, wait, shared)
}

// sendLocked is send for a caller that holds the mutex. It releases the mutex while it waits.
func (s *stream) sendLocked(frames [][]byte, end, wait, shared bool) error {
	c := s.c
	if s.err != nil {
		return s.err
	}
	o := s.out
	if o == nil {
		// If other streams wait, this one must get in line behind them.
		now := outgoing{frames: frames, shared: shared, end: end}
		if (s.place == placeStepping || c.sched.isFree()) && s.emit(&now) {
			c.wakeWriter()
			return nil
		}
		o = &outgoing{frames: append([][]byte(nil), now.frames...), shared: shared, end: end}
		s.out = o
	} else {
		o.frames = append(o.frames, frames...)
		o.shared = o.shared && shared
		o.end = o.end || end
	}
	s.enqueue()
	if !wait {
		return nil
	}
	if o.done == nil {
		o.done = make(chan struct{})
	}
	done := o.done
	c.mu.Unlock()
	<-done
	c.mu.Lock()
	if o.end && s.err == errClosed {
		return nil
	}
	return s.err
}

// emit moves data to the output until a window, the output or the quantum is exhausted. It returns
// true if everything was moved, including END_STREAM if o.end is true.
func (s *stream) emit(o *outgoing) bool {
	c := s.c
	left := o.size()
	for budget := quantum; left > 0; {
		wanted := min(int64(left), int64(c.sched.frameSize), int64(budget))
		n := min(wanted, s.window(), c.sched.window)
		if n <= 0 || c.out.room() <= 0 {
			return false
		}
		left -= int(n)
		budget -= int(n)
		last := left == 0 && o.end
		c.out.frame(int(n), http2.FrameData, endFlag(last), s.id)
		o.take(&c.out, int(n), c.writer.frames.SupportsVector())
		s.credit -= n
		c.sched.window -= n
		c.sched.endStall(s)
		c.budget.explainData(n, n < wanted)
		if last {
			s.closeLocal()
			return true
		}
	}
	if o.end {
		c.out.frame(0, http2.FrameData, http2.FlagDataEndStream, s.id)
		s.closeLocal()
	}
	return true
}

// sendPending sends data that waits in s.out, when it is the stream's turn.
func (s *stream) sendPending() {
	o := s.out
	switch {
	case s.emit(o):
		if s.out == o { // emit has not closed the stream
			s.out = nil
		}
		if o.done != nil && s.err == nil {
			close(o.done)
		}
		if s.step != nil {
			s.enqueue()
		}
	case !s.isOpen():
		s.block()
	default:
		s.enqueue()
	}
}

func endFlag(end bool) http2.Flags {
	if end {
		return http2.FlagDataEndStream
	}
	return 0
}
