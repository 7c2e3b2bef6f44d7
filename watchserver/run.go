package watchserver

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// wake makes the method loop call step again. It never blocks.
func (s *stream) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// run serves the stream on the calling goroutine until it ends, and returns how the
// transport must end it.
func (s *stream) run() (end transport.End) {
	end = transport.Abort
	var cause error
	defer func() {
		if p := recover(); p != nil {
			end, cause = s.recovered(p)
		}
		s.close(end, cause)
	}()
	s.server.Trace.opened(s)
	if opening := s.out.Encoder.Opening(); len(opening) > 0 {
		if cause = s.out.Sender.Send([][]byte{opening}); cause != nil {
			return end
		}
	}
	end, cause = s.loop()
	return end
}

// loop calls step whenever something is pending or due, until the stream ends.
func (s *stream) loop() (transport.End, error) {
	wake := s.wake // evaluated once, because each evaluation allocates
	timer := time.AfterFunc(forever, wake)
	defer timer.Stop()
	var timerAt time.Time // the time for which timer was set, possibly in the past
	for {
		now := time.Now()
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
		case <-s.out.Done:
			return transport.Abort, errClientGone
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

func (s *stream) close(end transport.End, cause error) {
	if errors.Is(cause, errComplete) {
		cause = nil
	}
	s.poller.Close()
	s.out.Sender.Close(end) // an error means that the client has disconnected
	s.server.watches.remove(s)
	s.server.Trace.closed(s, cause)
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
	return next
}
