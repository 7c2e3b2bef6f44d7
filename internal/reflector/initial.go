package reflector

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/listwatch/listwatch"
)

const (
	// maxInitialGap limits the time between two initial events. A server sends them as fast as the
	// network permits, and a server that cannot mark their end sends a bookmark within a minute.
	maxInitialGap = 2 * time.Minute
	// maxInitialTime limits the time for all initial events. Changes that follow the initial events
	// can look like them, so a gap may never come.
	maxInitialTime = 10 * time.Minute
	// After maxTruncated consecutive watches without an end of the initial events, the reflector
	// lists the source.
	maxTruncated = 3
)

// checkInitial returns an error if e is not an initial event that the Reflector has requested. A
// Sink that took a difference for a state would drop all other objects.
func (r *Reflector) checkInitial(e *listwatch.Event) error {
	message := ""
	switch since, isDifference := e.Since(); {
	case isDifference && (since == 0 || since != r.current.since):
		message = fmt.Sprintf("received the difference since version %d, want %d", since, r.current.since)
	case r.Restart != nil || e.Type == listwatch.Deleted && e.Initial && r.current.since != 0:
	case e.Type == listwatch.Modified || e.Type == listwatch.Deleted:
		// The source, or a proxy, may have left out the end of the initial events.
		r.countTruncated()
		message = fmt.Sprintf("%s %s was received before the end of the initial events", e.Type, e.Object.Key)
	}
	if message == "" {
		return nil
	}
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "read the initial events", Message: message}
}

// countTruncated counts a watch whose initial events had no end. The source may be unable to mark
// the end.
func (r *Reflector) countTruncated() {
	if r.failures.truncated++; r.failures.truncated >= maxTruncated {
		r.watchList().MarkUnsupported()
	}
}

// truncated returns the error of a watch that ended with err within the initial events. An
// incomplete state is useless and may have been expensive to send, so a clean end is a failure.
func (r *Reflector) truncated(err error, limit *initialLimit) error {
	e := &listwatch.Error{Code: listwatch.Unavailable, Op: "read the initial events", Err: io.ErrUnexpectedEOF}
	switch {
	case limit.expired():
		r.watchList().MarkUnsupported()
		e.Message, e.Err = "the source did not mark the end of the initial events in time", context.DeadlineExceeded
	case err == io.EOF:
		r.countTruncated()
	default:
		return err
	}
	return e
}

// An initialLimit ends a watch whose initial events take too long.
type initialLimit struct {
	ctx      context.Context // the context for all reads of the watch; ends with the limit
	end      context.CancelCauseFunc
	timer    *time.Timer // nil if the watch is not limited
	deadline time.Time
}

// limitInitialEvents returns the limit for a watch that r has opened. If the reader of the events
// handles incomplete states, it decides itself how long it waits.
func (r *Reflector) limitInitialEvents(ctx context.Context) *initialLimit {
	l := &initialLimit{deadline: time.Now().Add(maxInitialTime)}
	l.ctx, l.end = context.WithCancelCause(ctx)
	if !r.Resume.Synced && r.Restart == nil {
		l.timer = time.AfterFunc(maxInitialGap, func() { l.end(context.DeadlineExceeded) })
	}
	return l
}

// progress records that events have arrived.
func (l *initialLimit) progress(isSynced bool) {
	switch {
	case l.timer == nil:
	case isSynced:
		l.timer.Stop()
		l.timer = nil
	default:
		l.timer.Reset(min(maxInitialGap, time.Until(l.deadline)))
	}
}

// stop releases the resources of l.
func (l *initialLimit) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.end(nil)
}

func (l *initialLimit) expired() bool { return context.Cause(l.ctx) == context.DeadlineExceeded }
