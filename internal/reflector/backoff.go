package reflector

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/listwatch/listwatch"
)

const (
	// briefLife is the lifetime below which a watch without events counts as brief.
	briefLife = time.Second
	// MinDelayAfterBrief is the minimum delay after a brief watch.
	MinDelayAfterBrief = 100 * time.Millisecond
	// After maxDoubtful consecutive watches from one version that leave doubt about it, the
	// reflector requests the state. A proxy may hide from it that the history has expired.
	maxDoubtful = 3
)

// A WatchEnd describes how a watch ended, or that it could not be opened.
type WatchEnd struct {
	// Opened is false if the watch could not be opened. Then Lived and Received are zero.
	Opened bool
	// Lived is the time for which the watch was open.
	Lived time.Duration
	// Received is the number of events received.
	Received int
	// Rejected is true if the Sink did not accept an event.
	Rejected bool
	// Err is the reason for the end, or io.EOF after a clean end.
	Err error
}

// IsBrief reports whether the watch ended soon and without an event. If a server ends
// watches immediately, the reflector must not reconnect immediately.
func (w WatchEnd) IsBrief() bool { return w.Opened && w.Received == 0 && !w.HasLived() }

// HasLived reports whether the watch was open for at least a second, even if it received no event.
func (w WatchEnd) HasLived() bool { return w.Lived >= briefLife }

// IsClean reports whether the watch ended cleanly. It does not use errors.Is, because the
// error of a connection that broke during the dial may wrap io.EOF.
func (w WatchEnd) IsClean() bool { return w.Err == io.EOF }

// leavesDoubt reports whether the watch was open but ended without any sign that the source still
// has the history from its start: soon and without an event, or because nothing arrived until the
// reader gave up. An error that the source reported is a sign.
func (w WatchEnd) leavesDoubt() bool {
	isSilent := w.Received == 0 && errors.Is(w.Err, context.DeadlineExceeded)
	return w.Opened && (w.IsBrief() || isSilent) && !listwatch.AsError(w.Err).Remote
}

// refusesState reports whether the source reported an error without a code in place of the first
// initial event. A kube-apiserver does so over an etcd 3.4, because client-go then lists.
func (w WatchEnd) refusesState() bool {
	e := listwatch.AsError(w.Err)
	return w.Received == 0 && e.Remote && e.Code == listwatch.Unknown
}

// isExpiry reports whether the credentials of the watch have expired after it was open for a
// while. The server works, so this does not count as a failure.
func (e WatchEnd) isExpiry() bool {
	return e.HasLived() && listwatch.CodeOf(e.Err) == listwatch.Unauthorized
}

// A backoff counts consecutive failures. It is not safe for concurrent use.
type backoff struct {
	failures int
}

// delay returns the time to wait before the next watch. end describes the end of the last watch.
func (b *backoff) delay(c listwatch.Backoff, end WatchEnd) time.Duration {
	if end.Opened && end.Lived >= cmp.Or(c.Healthy, 2*time.Minute) {
		b.failures = 0
	}
	if end.IsClean() && !end.IsBrief() || end.isExpiry() {
		return c.Delay(0)
	}
	wait := c.Delay(b.failures) + listwatch.AsError(end.Err).RetryAfter()
	b.failures++
	if end.IsBrief() {
		wait += MinDelayAfterBrief
	}
	return wait
}

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
