package watchserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// wake makes the method loop call step again. It never blocks.
func (s *stream) wake() {
	s.caughtUp.Store(false)
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// run serves the stream on the calling goroutine until it ends. When ctx ends, the stream fails
// with contextError. An error means that the handler must panic to abort the response.
func (s *stream) run(ctx context.Context) (abort error) {
	end := transport.Abort
	var cause error
	stop := context.AfterFunc(ctx, func() { s.failAt(time.Now(), contextError(ctx)) })
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			end, cause = s.recovered(p)
		}
		if err := s.close(end, s.reason(ctx, cause)); end == transport.Abort {
			abort = err
		}
	}()
	if s.hooks.opened != nil {
		s.hooks.opened(s.describe())
	}
	if opening := s.out.Encoder.Opening(); len(opening) > 0 {
		if err := s.out.Sender.Send([][]byte{opening}); err != nil {
			cause = &sendError{err}
			return nil
		}
	}
	end, cause = s.loop(ctx)
	return nil
}

// loop calls step whenever something is pending or due, until the stream ends.
func (s *stream) loop(ctx context.Context) (transport.End, error) {
	wake := s.wake // evaluated once, because each evaluation allocates
	timer := time.AfterFunc(forever, wake)
	defer timer.Stop()
	var timerAt time.Time // the time for which timer was set, possibly in the past
	for {
		now := time.Now()
		select {
		case <-s.out.Finish:
			if s.endAt.IsZero() || now.Before(s.endAt) {
				s.endAt = now
			}
		default:
		}
		again, err := s.step(now)
		if err != nil {
			return endFor(err), err
		}
		if again.Equal(now) {
			continue
		}
		// Do not postpone a timer that is set too early: an extra step is cheaper than
		// setting the timer after each event.
		if !again.IsZero() && (again.Before(timerAt) || !timerAt.After(now)) {
			timerAt = again
			timer.Reset(timerAt.Sub(now))
		}
		s.poller.Wake(wake)
		select {
		case <-s.wakeup:
		case <-s.out.Finish:
		case <-s.out.Done:
			if ctx.Err() == nil {
				return transport.Abort, errClientGone
			}
			// Some transports close Done when ctx ends. Their clients can still receive the error.
			s.failAt(time.Now(), contextError(ctx))
		}
	}
}

var errClientGone = errors.New("the client has disconnected")

const forever = time.Duration(math.MaxInt64)

// endFor returns how the transport ends a stream whose step returned err. If the client has
// received err as an ERROR event, the stream is complete.
func endFor(err error) transport.End {
	if _, ok := errors.AsType[*sendError](err); ok {
		return transport.Abort
	}
	if errors.Is(err, errDraining) {
		return transport.GoingAway
	}
	return transport.Finished
}

// recovered handles a panic of the source or of a framing. It logs the panic, and sends an
// ERROR event unless the panic happened during a write.
func (s *stream) recovered(p any) (end transport.End, err error) {
	err = errInternal()
	s.server.logger().Error("watchserver: panic in a watch",
		"url", s.info.URL, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if s.writingSince.Load() != 0 {
		return transport.Abort, err
	}
	frame, encodeErr := s.out.Encoder.Error(err)
	if encodeErr != nil || s.out.Sender.Send([][]byte{frame}) != nil {
		return transport.Abort, err
	}
	return transport.Finished, err
}

// errInternal is the error that a client receives after a panic.
func errInternal() error {
	return &listwatch.Error{Code: listwatch.Unknown, Op: "watch", Message: "internal error"}
}

// reason returns the error for Trace.Closed. The parameter cause is the result of loop.
func (s *stream) reason(ctx context.Context, cause error) error {
	select {
	case <-s.out.Done:
		// net/http cancels the context of a client that disconnects, and also after a write
		// timeout over HTTP/2.
		if context.Cause(ctx) == context.Canceled && !errors.Is(cause, os.ErrDeadlineExceeded) {
			return errClientGone
		}
	default:
	}
	if errors.Is(cause, errComplete) {
		return nil
	}
	if f := s.dueFailure(time.Now()); f != nil && f.err != errComplete && !errors.Is(cause, f.err) {
		return errors.Join(f.err, cause) // the error could not be sent
	}
	return cause
}

// close ends the stream and returns the error of the sender.
func (s *stream) close(end transport.End, reason error) error {
	s.poller.Close()
	err := s.out.Sender.Close(end)
	if f := s.failure.Load(); f != nil {
		f.abort.Stop()
	}
	s.server.watches.remove(s)
	if s.hooks.closed != nil {
		s.hooks.closed(s.describe(), s.endReason(reason), reason)
	}
	return err
}

// maxDuration is the upper bound of the durations in [Timing], so that they can be doubled
// without an overflow.
const maxDuration = 365 * 24 * time.Hour

// orDefault returns d, or byDefault if d is zero, but at most maxDuration.
func (t Timing) orDefault(d, byDefault time.Duration) time.Duration {
	return min(cmp.Or(d, byDefault), maxDuration)
}

func (s *Server) heartbeat() time.Duration {
	return s.Timing.orDefault(s.Timing.Heartbeat, DefaultHeartbeat)
}

// randomBetween returns a random duration of at least low and at most high.
func randomBetween(low, high time.Duration) time.Duration {
	return low + rand.N(max(high-low, 0)+1)
}

// isDue reports whether t has been reached. A zero t means never.
func isDue(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// lastBookmarkBefore is the time between the last bookmark of a stream and its end, as in
// kube-apiserver.
const lastBookmarkBefore = 2 * time.Second

// nextBookmark returns the time of the bookmark that follows one sent at the time now: about
// an interval later, or shortly before the end. It returns the zero time if no bookmark
// follows.
func (s *stream) nextBookmark(now time.Time) time.Time {
	interval := s.server.Timing.orDefault(s.server.Timing.Bookmark, DefaultBookmark)
	if !s.bookmarks || interval < 0 {
		return time.Time{}
	}
	next := now.Add(randomBetween(interval*3/4, interval*5/4))
	if last := s.endAt.Add(-lastBookmarkBefore); !s.endAt.IsZero() && last.After(now) && last.Before(next) {
		return last
	}
	return next
}

// nextDue returns the earliest time at which s has something to send, or the zero time if
// there is none.
func (s *stream) nextDue() time.Time {
	next := s.endAt
	for _, t := range [...]time.Time{s.bookmarkAt, s.heartbeatAt} {
		if next.IsZero() || !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	if at := s.drainAt.Load(); at != nil && (next.IsZero() || at.Before(next)) {
		next = *at
	}
	if f := s.failure.Load(); f != nil && (next.IsZero() || f.at.Before(next)) {
		next = f.at
	}
	return next
}
