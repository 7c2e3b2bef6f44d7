package watchserver

import (
	"time"

	"github.com/listwatch/listwatch/internal/timers"
)

// deadlines holds the times at which a stream has something to send without an event. The driver of
// the stream owns it. Each time is zero if nothing is due.
type deadlines struct {
	timer     timers.Entry // its Call is stream.wake
	end       timers.Time  // when the watch times out
	bookmark  timers.Time  // when the next bookmark is due
	heartbeat timers.Time  // when the next heartbeat is due
	bookmarks bool         // the client allows bookmarks; immutable
	deferred  bool         // a bookmark that was due waits for the next segment
}

// init sets the times of a watch that is opened now.
func (d *deadlines) init(t *Timing, q request, now timers.Time) {
	d.bookmarks = q.Bookmarks
	if q.Timeout > 0 {
		d.end = now.Add(q.Timeout)
	}
	d.scheduleBookmark(t, now)
	if t.heartbeat() > 0 {
		d.heartbeat = now.Add(t.heartbeat())
	}
}

// isDue reports whether t has been reached. A zero t means never.
func isDue(t, now timers.Time) bool { return t != 0 && now >= t }

// earliest returns the earliest of the times that are not zero, or zero.
func earliest(times ...timers.Time) (first timers.Time) {
	for _, t := range times {
		if first == 0 || t != 0 && t < first {
			first = t
		}
	}
	return first
}

// lastBookmarkBefore is the time between the last bookmark of a stream and its end, as in
// kube-apiserver.
const lastBookmarkBefore = 2 * time.Second

// scheduleBookmark sets the time of the next bookmark, after a bookmark was sent at now: about an
// interval later, or shortly before the end of the stream if that is earlier.
func (d *deadlines) scheduleBookmark(t *Timing, now timers.Time) {
	interval := t.orDefault(t.Bookmark, DefaultBookmark)
	d.bookmark, d.deferred = 0, false
	if !d.bookmarks || interval < 0 {
		return
	}
	d.bookmark = now.Add(randomBetween(interval*3/4, interval*5/4))
	if last := d.end.Add(-lastBookmarkBefore); d.end != 0 && last > now && last < d.bookmark {
		d.bookmark = last
	}
}

// maxBookmarkDelay is the longest time for which a bookmark waits for the start of the next
// segment. A segment is a series of events that streams share in compressed form. A stream that
// sent a bookmark within a segment could not use the rest of the segment.
const maxBookmarkDelay = 10 * time.Second

// deferBookmark reports whether the bookmark that is now due waits for the next segment, and if so
// sets the bookmark's new time. inSegment is true if the stream is within a segment. The last
// bookmark before the end does not wait.
func (d *deadlines) deferBookmark(now timers.Time, inSegment bool) bool {
	at := now.Add(maxBookmarkDelay)
	isLast := d.end != 0 && at > d.end.Add(-lastBookmarkBefore)
	if d.deferred || isLast || !inSegment {
		return false
	}
	d.bookmark, d.deferred = at, true
	return true
}

// arm makes q call the function of the timer at the given time, unless that is zero.
func (d *deadlines) arm(q *timers.Queue, at, now timers.Time) {
	// Do not postpone a timer that is set too early: an extra step is cheaper than setting the
	// timer after each event.
	if set := d.timer.At(); at != 0 && (at < set || set <= now) {
		q.Set(&d.timer, at)
	}
}
