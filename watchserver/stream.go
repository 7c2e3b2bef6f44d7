package watchserver

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
	"unique"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/timers"
)

// A stream is one open watch. Its driver calls step, which blocks only in writes. The driver runs
// on a goroutine that exists only while the stream has something to send.
//
// A stream is small, because a million of them may be idle: streams with equal requests share an
// origin, most detached streams share an attachment, and each point in time is stored in eight
// bytes.
type stream struct {
	// Immutable after construction.
	server *Server
	source listwatch.Source
	origin unique.Handle[origin]
	id     uint64 // Watch.ID
	opened timers.Time
	*attachment

	slot int32 // the index in watchSet.streams, guarded by its mutex

	poller framePoller // owned by the driver, except for Wake and Close
	output
	deadlines
	driver
	ending
}

// An ending holds the orders to end a stream, which any goroutine may give.
type ending struct {
	// drainAt is the time, a timers.Time, at which a drain ends the stream. It is zero without a
	// drain.
	drainAt atomic.Int64
	// failure is the time at which the stream ends with an error, and that error. It is nil if
	// failAt was not called.
	failure atomic.Pointer[failure]
}

// An origin describes the request of a watch. Streams with equal requests share one origin. The
// streams of one connection often have equal requests.
type origin struct {
	request                           Request
	transport, mediaType, compression string
}

// An attachment connects a stream to its request, its handler and its transport. Most detached
// streams need none of its fields, and share the variable named detached.
type attachment struct {
	// ctx has the values of the request. It ends with the request, unless the stream is detached.
	ctx       context.Context
	authorize authorizer // Endpoint.Authorize
	// finishing and progress are the fields Finish and Progress of the transport.Stream. They may
	// be nil.
	finishing <-chan struct{}
	progress  func(events int, resume listwatch.Version)
	closed    chan struct{} // closed when the stream has ended; nil if nothing waits for it
	abort     error         // the error of the sender's Close; written before closed is closed
}

var detached = &attachment{ctx: context.Background()}

// The errors that step returns for a stream that ended cleanly.
var (
	errComplete = errors.New("the watch is complete")
	errDraining = errors.New("the server is draining")
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
	n, pollErr := s.poller.PollFrames(b.events[:], b.refs[:])
	b.polled = n
	if err := s.sendPolled(b); err != nil {
		return now, err
	}
	if s.progress != nil {
		s.reportProgress(n)
	}
	// A stream whose time is up ends even if more events are pending. A draining stream sends the
	// pending events first.
	if n == len(b.events) && !isDue(s.endAt, now) {
		return now, nil
	}
	if pollErr != nil {
		return now, s.fail(b, pollErr)
	}
	if isDue(s.endAt, now) || isDue(drainAt, now) {
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

// A pendingPoller is a Poller that may be waiting for a version in the future. PendingError
// returns the error to report in that case, and otherwise nil.
type pendingPoller interface{ PendingError() error }

// finish ends a stream cleanly because its time is up or the server drains, with a last
// bookmark if the client allows bookmarks.
func (s *stream) finish(b *batch) error {
	if p, ok := s.poller.(pendingPoller); ok && p.PendingError() != nil {
		// A clean end would imply that no event has happened since the requested version.
		return s.fail(b, p.PendingError())
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

// fail ends a stream whose Source returned cause: cleanly if cause is io.EOF, and otherwise with an
// ERROR event.
func (s *stream) fail(b *batch, cause error) error {
	if errors.Is(cause, io.EOF) {
		return errComplete
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

// resumeVersion returns a version that the client may resume from, or zero within the
// initial events.
func (s *stream) resumeVersion() listwatch.Version {
	if at := s.poller.Position(); at >= s.lastSent {
		return at
	}
	return 0
}

// describe returns the current state of s.
func (s *stream) describe() Watch {
	o := s.origin.Value()
	w := Watch{
		Request: o.request, ID: s.id, Transport: o.transport, MediaType: o.mediaType, Compression: o.compression,
		// Compute Opened from the current time, because the clock may have been set since the watch
		// was opened.
		Opened: time.Now().Add(-time.Duration(s.server.timers.Now() - s.opened)),
		Events: s.events.Load(), Bytes: s.bytes.Load(), Version: listwatch.Version(s.sentVersion.Load()),
		CaughtUp: s.state.Load() == driverIdle,
	}
	if since := timers.Time(s.writingSince.Load()); since != 0 {
		w.Writing = time.Duration(s.server.timers.Now() - since)
	}
	return w
}
