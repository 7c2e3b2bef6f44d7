package watchserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/transport"
)

// drive takes steps until nothing is pending or due, or the stream is behind.
func (s *stream) drive() {
	growStack(0)
	for s.advance() {
		if s.behind {
			s.schedule()
			return
		}
	}
}

// driveScheduled takes one step and schedules the next, so that the transport can serve other
// streams in between.
func (s *stream) driveScheduled() {
	if s.advance() {
		s.schedule()
	}
}

// awaitTurn makes the driver take a step at its turn. Few streams that are behind get a turn at the
// same time, so that a stream with a new event, and any other request, finds a free processor
// however many streams send their initial events. A turn ends before the first write of its step,
// which may block.
func (s *stream) awaitTurn() {
	s.server.entrance().Turns().Go(s.origin.Value().request.Client, func() {
		s.inTurn = true
		if t := s.scheduler(); t != nil {
			t.Run(s.driveFunc)
			return
		}
		s.driveFunc()
	})
}

// endTurn ends the turn of the step, if it has one.
func (s *stream) endTurn() {
	if s.inTurn {
		s.inTurn = false
		s.server.entrance().Turns().End()
	}
}

// send ends the turn of the step, and sends frames.
func (s *stream) send(frames [][]byte) error {
	s.endTurn()
	return s.sender.Send(frames)
}

// growStack makes the stack large enough for a write. A driver often begins with the smallest
// stack. Growing it here, where only two frames must be copied, saves a tenth of the CPU time of a
// delivery, compared with growing it within the write.
//
//go:noinline
func growStack(i int) byte {
	var space [1536]byte
	return space[i]
}

// run opens the stream and returns when the stream has ended. When the request's context ends, the
// stream fails with contextError. An error means that the handler must panic to abort the response.
func (s *stream) run(out *transport.Stream) (abort error) {
	stop := context.AfterFunc(s.ctx, func() { s.failAt(time.Now(), apihttp.ContextError(s.ctx)) })
	defer stop()
	s.start(out)
	if out.Serve != nil {
		out.Serve()
	}
	<-s.closed
	return s.abort
}

// start wakes the driver for the first time, and arranges that a disconnect of the client or a
// closed Stream.Finish wakes the driver again.
func (s *stream) start(out *transport.Stream) {
	s.wake()
	out.OnDone(func() {
		s.disconnected.Store(true)
		s.wake()
	})
	if s.finishing != nil {
		go func() {
			select {
			case <-s.finishing:
				s.wake()
			case <-s.closed:
			}
		}()
	}
}

// advance takes a step of the driver and reports whether another one is needed. Otherwise the
// driver must return: the stream has ended, or waits to be woken.
func (s *stream) advance() (more bool) {
	defer func() {
		if p := recover(); p != nil {
			s.endTurn()
			s.logPanic(p)
			s.end(s.reportPanic(), errInternal())
			more = false
		}
	}()
	s.state.Store(driverRunning) // any wake until now is covered by this step
	now := s.server.timers.Now()
	var wakeAt timers.Time
	err := s.open()
	if err == nil {
		err = s.checkTransport(now)
	}
	if err == nil {
		wakeAt, err = s.step(now)
	}
	s.endTurn()
	switch {
	case err != nil:
		s.end(endFor(err), err)
		return false
	case wakeAt == now:
		s.behind = true
		return true
	}
	s.behind = false
	s.arm(wakeAt, now)
	return !s.state.CompareAndSwap(driverRunning, driverIdle)
}

// open calls Trace.Opened and sends the opening of the framing. Only the first call has an effect.
func (s *stream) open() error {
	if s.started {
		return nil
	}
	s.started = true
	if t := s.server.Trace; t != nil && t.Opened != nil {
		t.Opened(s.ctx, s.describe())
	}
	if opening := s.encoder.Opening(); len(opening) > 0 {
		if err := s.send([][]byte{opening}); err != nil {
			return &sendError{err}
		}
	}
	return nil
}

// checkTransport handles a disconnect. It also handles a closed Stream.Finish, which means that the
// transport requests the end of the stream.
func (s *stream) checkTransport(now timers.Time) error {
	select {
	case <-s.finishing:
		if s.endAt == 0 || now < s.endAt {
			s.endAt = now
		}
	default:
	}
	if !s.disconnected.Load() {
		return nil
	}
	if s.ctx.Err() == nil {
		return errClientGone
	}
	// Some transports report a disconnect when ctx ends, although their clients are still connected
	// and can receive the error.
	s.failAt(time.Now(), apihttp.ContextError(s.ctx))
	return nil
}

// arm makes the poller wake the stream at the next event, unless the stream is paused. Unless
// wakeAt is zero, it also makes the timer wake the stream at that time.
func (s *stream) arm(wakeAt, now timers.Time) {
	// Do not postpone a timer that is set too early: an extra step is cheaper than setting the
	// timer after each event.
	if set := s.timer.At(); wakeAt != 0 && (wakeAt < set || set <= now) {
		s.server.timers.Set(&s.timer, wakeAt)
	}
	if !s.isPaused(now) {
		s.poller.Wake(s.timer.Call)
	}
}

var errClientGone = errors.New("the client has disconnected")

// endFor returns the [transport.End] of a stream that ends with err. It is Finished even if the
// client has received err as an ERROR event.
func endFor(err error) transport.End {
	if _, ok := errors.AsType[*sendError](err); ok || err == errClientGone {
		return transport.Abort
	}
	if errors.Is(err, errDraining) {
		return transport.GoingAway
	}
	return transport.Finished
}

// reportPanic sends an ERROR event after a panic of the source or of a framing, unless the panic
// happened during a write.
func (s *stream) reportPanic() (end transport.End) {
	end = transport.Abort
	if s.writingSince.Load() != 0 {
		return end
	}
	s.guard(func() {
		frame, err := s.encoder.Error(errInternal())
		if err == nil && s.send([][]byte{frame}) == nil {
			end = transport.Finished
		}
	})
	return end
}

// guard calls f and logs its panic, if any.
func (s *stream) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p)
		}
	}()
	f()
}

func (s *stream) logPanic(p any) {
	s.server.logger().Error("watchserver: panic in a watch",
		"path", s.origin.Value().request.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// reason returns the error for Trace.Closed. cause is the error with which the driver has ended the
// stream.
func (s *stream) reason(cause error) error {
	// net/http cancels the context of a client that disconnects, and also after a write timeout
	// over HTTP/2.
	if !s.ownsConn && context.Cause(s.ctx) == context.Canceled && !errors.Is(cause, os.ErrDeadlineExceeded) {
		return errClientGone
	}
	if errors.Is(cause, errComplete) {
		return nil
	}
	if f := s.dueFailure(); f != nil && f.err != errComplete && !errors.Is(cause, f.err) {
		return errors.Join(f.err, cause) // the error could not be sent
	}
	return cause
}

// end ends the stream. A panic in the source, the transport or a hook is logged.
func (s *stream) end(end transport.End, cause error) {
	s.state.Store(driverCompleted)
	reason := s.reason(cause)
	s.guard(func() { s.poller.Close() })
	s.encoder.Close()
	var abort error
	s.guard(func() { abort = s.sender.Close(end) })
	if f := s.failure.Load(); f != nil {
		s.server.timers.Stop(&f.abort)
	}
	s.server.timers.Stop(&s.timer)
	s.server.watches.remove(s)
	if t := s.server.Trace; t != nil && t.Closed != nil {
		s.guard(func() { t.Closed(s.ctx, s.describe(), s.endReason(reason), reason) })
	}
	s.server.watches.removed()
	if s.closed != nil {
		if end == transport.Abort {
			s.abort = abort
		}
		close(s.closed)
	}
}

// endReason returns the reason for the end of s with the error err.
func (s *stream) endReason(err error) EndReason {
	_, sending := errors.AsType[*sendError](err)
	drainAt := timers.Time(s.drainAt.Load())
	switch {
	case err == nil:
		return EndComplete
	case errors.Is(err, errDraining), (sending || errors.Is(err, errClientGone)) &&
		isDue(drainAt, s.server.timers.Now()):
		return EndDrained
	case errors.Is(err, listwatch.Expired):
		return EndExpired
	case errors.Is(err, listwatch.Unauthorized), errors.Is(err, listwatch.Forbidden):
		return EndRefused
	case sending && errors.Is(err, os.ErrDeadlineExceeded):
		return EndTooSlow
	case sending, errors.Is(err, errClientGone):
		return EndClientGone
	}
	if f := s.failure.Load(); f != nil && errors.Is(err, f.err) {
		return EndCanceled
	}
	return EndFailed
}
