package watchserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/transport"
)

// abortTimeout limits the time that Drain waits for watches whose clients it has
// disconnected.
const abortTimeout = time.Second

// An ending holds the requests to end a stream. Any goroutine may make one.
type ending struct {
	drain atomic.Int64 // see drainAt
	// failure is the time at which the stream ends with an error, and that error. It is nil if
	// failAt was not called.
	failure atomic.Pointer[failure]
}

// A failure is the time at which a stream ends with an error, and that error.
type failure struct {
	at    time.Time
	err   error
	abort timers.Entry // disconnects a client that does not accept the error
}

// drainAt returns the time at which a drain ends the stream, or zero without a drain.
func (e *ending) drainAt() timers.Time { return timers.Time(e.drain.Load()) }

// failEarlier sets the failure to next, unless the current failure has the same time or an earlier
// one. It returns the failure that is no longer needed: next or the failure that next replaces, if
// any.
func (e *ending) failEarlier(next *failure) (dropped *failure) {
	for {
		old := e.failure.Load()
		if old != nil && !next.at.Before(old.at) {
			return next
		}
		if e.failure.CompareAndSwap(old, next) {
			return old
		}
	}
}

// dueFailure returns the failure if its time has been reached, and otherwise nil. It reads the
// clock itself, because credentials expire by the wall clock, which can be set.
func (e *ending) dueFailure() *failure {
	if f := e.failure.Load(); f != nil && !time.Now().Before(f.at) {
		return f
	}
	return nil
}

// failAt makes s end with an error at the given time, or now if that time has passed. Before it
// ends, s sends a bookmark if the client allows bookmarks, and err as an ERROR event. A client that
// does not accept them within abortTimeout is disconnected. If failAt is called several times, the
// earliest time counts. Any goroutine may call it.
//
// It is the only way to end a stream with an error from outside, whatever the reason: the end of
// the request's context, the expiry of credentials, or an operator.
func (s *stream) failAt(at time.Time, err error) {
	next := &failure{at: at, err: err}
	setAbort := func() { s.server.timers.Set(&next.abort, s.server.timerAt(at).Add(abortTimeout)) }
	next.abort.Call = func() {
		if time.Now().Before(at) { // the clock was set back
			setAbort()
			return
		}
		go s.sender.Close(transport.Abort)
	}
	setAbort()
	dropped := s.ending.failEarlier(next)
	if dropped != nil {
		s.server.timers.Stop(&dropped.abort)
	}
	if dropped != next {
		s.wake()
	}
}

// drain makes s end cleanly at t.
func (s *stream) drain(t timers.Time) {
	s.ending.drain.Store(int64(t))
	s.wake()
}

// recheck ends s if its user is no longer allowed to watch, and reports whether it has ended s.
func (s *stream) recheck() bool {
	user, err := UserOf(s.ctx).current()
	if err == nil {
		err = s.authorize.check(s.ctx, user)
	}
	if err != nil {
		s.failAt(time.Now(), err)
	}
	return err != nil
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
	if s.sent.writingSince.Load() != 0 {
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
	if f := s.ending.dueFailure(); f != nil && f.err != errComplete && !errors.Is(cause, f.err) {
		return errors.Join(f.err, cause) // the error could not be sent
	}
	return cause
}

// end ends the stream. A panic in the source, the transport or a hook is logged.
func (s *stream) end(end transport.End, cause error) {
	s.wakes.complete()
	reason := s.reason(cause)
	s.guard(func() { s.poller.Close() })
	s.encoder.Close()
	var abort error
	s.guard(func() { abort = s.sender.Close(end) })
	if f := s.ending.failure.Load(); f != nil {
		s.server.timers.Stop(&f.abort)
	}
	s.server.timers.Stop(&s.due.timer)
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
	switch {
	case err == nil:
		return EndComplete
	case errors.Is(err, errDraining), (sending || errors.Is(err, errClientGone)) &&
		isDue(s.ending.drainAt(), s.server.timers.Now()):
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
	if f := s.ending.failure.Load(); f != nil && errors.Is(err, f.err) {
		return EndCanceled
	}
	return EndFailed
}
