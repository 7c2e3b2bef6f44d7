package watchserver

import (
	"github.com/listwatch/listwatch/internal/timers"
)

// step sends the pending events, and the bookmark or heartbeat if one is due at now. The result
// wakeAt is the time at which step must be called next, unless the poller wakes the stream before.
// It equals now if more events may be pending, and is zero if nothing is due.
//
// After an error the stream has ended and nothing more may be sent. The error is errComplete,
// errDraining, or the reason for the end, which was sent to the client as an ERROR event if that
// was possible.
func (s *stream) step(now timers.Time) (wakeAt timers.Time, err error) {
	b := newBatch(now)
	defer b.release()
	if f := s.dueFailure(); f != nil {
		return now, s.finishWith(b, f.err)
	}
	// Load drainAt before Poll, so that all events committed before the drain are sent.
	drainAt := timers.Time(s.drainAt.Load())
	var n int
	var pollErr error
	if isDue(drainAt, now) || !s.isPaused(now) {
		n, pollErr = s.poller.PollFrames(b.events[:], b.refs[:])
	}
	b.polled = n
	if err := s.sendPolled(b); err != nil {
		return now, err
	}
	if s.progress != nil {
		s.reportProgress(n)
	}
	s.pauseAfterGroup(n)
	// A stream whose time is up ends even if more events are pending. A draining stream sends the
	// pending events first.
	if n == len(b.events) && !isDue(s.endAt, now) {
		return now, nil
	}
	if pollErr != nil {
		return now, s.fail(b, pollErr)
	}
	if isDue(s.endAt, now) || isDue(drainAt, now) {
		if !isDue(s.endAt, now) && s.mayHaveMore(n) {
			return now, nil
		}
		return now, s.finish(b)
	}
	if isDue(s.bookmarkAt, now) && !s.deferBookmark(now) {
		if err := s.sendBookmark(b); err != nil {
			return now, err
		}
		s.scheduleBookmark(now)
	}
	if isDue(s.heartbeatAt, now) {
		if err := s.sendHeartbeat(b, now); err != nil {
			return now, err
		}
	}
	return s.nextDue(), nil
}

// finish ends a stream cleanly because its time is up or the server drains, with a last
// bookmark if the client allows bookmarks.
func (s *stream) finish(b *batch) error {
	if err := s.poller.Progress().Waiting; err != nil {
		// A clean end would imply that no event has happened since the requested version.
		return s.fail(b, err)
	}
	if err := s.sendBookmark(b); err != nil {
		return err
	}
	if s.drainAt.Load() != 0 {
		return errDraining
	}
	return errComplete
}

// finishWith ends a stream for a reason outside of its Source: with a last bookmark if the client
// allows bookmarks, and then with cause as an ERROR event, or cleanly if cause is errComplete.
func (s *stream) finishWith(b *batch, cause error) error {
	if cause == errComplete {
		return s.finish(b)
	}
	if err := s.sendBookmark(b); err != nil {
		return err
	}
	return s.sendErrorEvent(b, cause)
}

// reportProgress calls Stream.Progress when events were sent, or when the client can resume for the
// first time. n is the number of events.
func (s *stream) reportProgress(n int) {
	at := s.resumeVersion()
	if n > 0 || at > 0 && !s.reportedSync {
		s.reportedSync = s.reportedSync || at > 0
		s.progress(n, at)
	}
}
