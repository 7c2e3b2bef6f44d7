package watchserver

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/listwatch/listwatch/internal/timers"
)

// maxDuration is the upper bound of the durations in [Timing], so that they can be doubled
// without an overflow.
const maxDuration = 365 * 24 * time.Hour

// orDefault returns d, or byDefault if d is zero, but at most maxDuration.
func (t Timing) orDefault(d, byDefault time.Duration) time.Duration {
	return min(cmp.Or(d, byDefault), maxDuration)
}

// watchDuration returns the time after which the watch ends, or zero if it has no end.
func (s *Server) watchDuration(q request) time.Duration {
	d := q.timeout
	if least := s.Timing.orDefault(s.Timing.Timeout, DefaultTimeout); d == 0 && least > 0 {
		d = randomBetween(least, 2*least)
	}
	return d
}

func (s *Server) heartbeat() time.Duration {
	return s.Timing.orDefault(s.Timing.Heartbeat, DefaultHeartbeat)
}

// randomBetween returns a random duration of at least low and at most high.
func randomBetween(low, high time.Duration) time.Duration {
	return low + rand.N(max(high-low, 0)+1)
}

// isDue reports whether t has been reached. A zero t means never.
func isDue(t, now timers.Time) bool { return t != 0 && now >= t }

// lastBookmarkBefore is the time between the last bookmark of a stream and its end, as in
// kube-apiserver.
const lastBookmarkBefore = 2 * time.Second

// nextBookmark returns the time of the next bookmark: about an interval after the given time, or
// shortly before the end of the stream if that is earlier. It returns the zero time if the stream
// sends no bookmarks at intervals.
func (s *stream) nextBookmark(now timers.Time) timers.Time {
	interval := s.server.Timing.orDefault(s.server.Timing.Bookmark, DefaultBookmark)
	if !s.bookmarks || interval < 0 {
		return 0
	}
	next := now.Add(randomBetween(interval*3/4, interval*5/4))
	if last := s.endAt.Add(-lastBookmarkBefore); s.endAt != 0 && last > now && last < next {
		return last
	}
	return next
}

// maxBookmarkDelay is the longest time for which a bookmark waits for the start of the next
// segment. A segment is a series of events that streams share in compressed form. A stream that
// sent a bookmark within a segment could not use the rest of the segment.
const maxBookmarkDelay = 10 * time.Second

// scheduleBookmark sets the time of the next bookmark, after a bookmark was sent at now.
func (s *stream) scheduleBookmark(now timers.Time) {
	s.bookmarkAt, s.bookmarkDeferred = s.nextBookmark(now), false
}

// deferBookmark reports whether the bookmark that is now due waits for the next segment, and if so
// sets the bookmark's new time. The last bookmark before the end does not wait.
func (s *stream) deferBookmark(now timers.Time) bool {
	at := now.Add(maxBookmarkDelay)
	isLast := s.endAt != 0 && at > s.endAt.Add(-lastBookmarkBefore)
	if s.bookmarkDeferred || isLast || !s.encoder.InSegment(s.server.timers.StdTime(now)) {
		return false
	}
	s.bookmarkAt, s.bookmarkDeferred = at, true
	return true
}

// nextDue returns the earliest time at which s has something to send, or the zero time if
// there is none.
func (s *stream) nextDue() timers.Time {
	next := s.endAt
	consider := func(t timers.Time) {
		if next == 0 || t != 0 && t < next {
			next = t
		}
	}
	consider(s.bookmarkAt)
	consider(s.heartbeatAt)
	if s.conflation != nil {
		consider(s.conflation.until)
	}
	consider(timers.Time(s.drainAt.Load()))
	if f := s.failure.Load(); f != nil {
		consider(s.server.timerAt(f.at))
	}
	return next
}

// timerAt converts a time of the wall clock to the time of a timer: now if the time has passed, and
// maxDuration from now if it is further away. Setting the clock makes the result wrong, so callers
// look at the clock again when the timer fires.
func (s *Server) timerAt(at time.Time) timers.Time {
	return s.timers.Now().Add(min(max(0, time.Until(at)), maxDuration))
}
