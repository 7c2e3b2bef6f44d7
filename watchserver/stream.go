package watchserver

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/internal/wire"
	"github.com/listwatch/listwatch/internal/wire/frames"
	"github.com/listwatch/listwatch/transport"
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
	poller framePoller
	sender transport.Sender
	source listwatch.Source
	origin unique.Handle[origin]
	id     uint64 // Watch.ID
	opened timers.Time
	*attachment
	// driveFunc is drive, or driveScheduled if sender is a transport.Scheduler. It is evaluated
	// once, because each evaluation allocates.
	driveFunc func()
	ownsConn  bool // the transport reads the connection
	bookmarks bool // the client allows bookmarks

	slot         int32        // the index in watchSet.streams, guarded by its mutex
	driver       atomic.Int32 // a driverState
	disconnected atomic.Bool  // the transport has called the function passed to OnDone

	// Owned by the driver.
	started      bool // the method open was called
	reportedSync bool // Stream.Progress was called with a version
	// bookmarkDeferred is true while a bookmark that was due waits for the next segment.
	bookmarkDeferred bool
	encoder          wire.Encoder
	timer            timers.Entry      // its Call is wake
	endAt            timers.Time       // when the watch times out; zero if it has no timeout
	bookmarkAt       timers.Time       // when the next bookmark is due; zero if none is
	heartbeatAt      timers.Time       // when the next heartbeat is due; zero if none is
	lastSent         listwatch.Version // the last version sent; zero during the initial events

	// Written by the driver, read by any goroutine.
	events, bytes, sentVersion atomic.Int64
	// writingSince is the start of the current write, a timers.Time. It is zero if no write is in
	// progress.
	writingSince atomic.Int64

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

// A batch holds the working memory of one step. It is pooled so that idle streams hold none.
type batch struct {
	events [64]listwatch.Event
	refs   [64]frames.Ref // the caches of events
	polled int            // the number of events
	frames [][]byte
	bytes  int
	// committed is the commit time of the oldest event in frames that was committed after the
	// watch was opened. It is zero if there is none.
	committed time.Time
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// The errors that step returns for a stream that ended cleanly.
var (
	errComplete = errors.New("the watch is complete")
	errDraining = errors.New("the server is draining")
)

// step sends the pending events, and the bookmark or heartbeat if one is due at now. The result
// wakeAt is the time at which step must be called next, unless the poller wakes the stream before.
// It equals the parameter now if more events may be pending, and is zero if nothing is due.
//
// After an error the stream has ended and nothing more may be sent. The error is errComplete,
// errDraining, or the reason for the end, which was sent to the client as an ERROR event if that
// was possible.
func (s *stream) step(now timers.Time) (wakeAt timers.Time, err error) {
	b := batches.Get().(*batch)
	defer b.release()
	if f := s.dueFailure(); f != nil {
		return now, s.finishWith(b, f.err, now)
	}
	// Load drainAt before Poll, so that all events committed before the drain are sent.
	drainAt := timers.Time(s.drainAt.Load())
	n, err := s.poller.PollFrames(b.events[:], b.refs[:])
	b.polled = n
	if n > 0 {
		if err := s.send(b, b.events[:n], b.refs[:n], now); err != nil {
			return now, err
		}
	}
	if s.progress != nil {
		s.reportProgress(n)
	}
	// A stream whose time is up ends even if more events are pending. A draining stream sends the
	// pending events first.
	if n == len(b.events) && !isDue(s.endAt, now) {
		return now, nil
	}
	if err != nil {
		return now, s.fail(b, err, now)
	}
	if isDue(s.endAt, now) || isDue(drainAt, now) {
		return now, s.finish(b, now)
	}
	if isDue(s.bookmarkAt, now) && !s.deferBookmark(now) {
		if err := s.sendBookmark(b, now); err != nil {
			return now, err
		}
		s.bookmarkAt, s.bookmarkDeferred = s.nextBookmark(now), false
	}
	if isDue(s.heartbeatAt, now) {
		if err := s.sendHeartbeat(b, now); err != nil {
			return now, err
		}
	}
	return s.nextDue(), nil
}

// send encodes events and writes them, in one write unless they exceed batchBytes.
func (s *stream) send(b *batch, events []listwatch.Event, refs []frames.Ref, now timers.Time) error {
	count := 0
	for i := range events {
		var frame []byte
		err := listwatch.CheckVersion(s.source, events[i].Version)
		if err == nil {
			frame, err = s.encoder.Event(events[i], refs[i])
		}
		if err != nil {
			// Send the preceding events before the error.
			if err := s.flush(b, count, now); err != nil {
				return err
			}
			return s.fail(b, err, now)
		}
		size := s.encoder.WireSize(frame)
		if len(b.frames) > 0 && b.bytes+size > s.server.batchBytes() {
			if err := s.flush(b, count, now); err != nil {
				return err
			}
			count, now = 0, s.server.timers.Now()
		}
		if s.bookmarkDeferred && s.encoder.StartsSegment() {
			if err := s.addBookmark(b, events[i].Version-1, now); err != nil {
				return s.fail(b, err, now)
			}
			count++
		}
		b.add(frame, size)
		if at := events[i].Committed; b.committed.IsZero() && s.server.timers.Time(at) >= s.opened {
			b.committed = at
		}
		count++
		if !events[i].Initial {
			s.lastSent = events[i].Version
		}
	}
	return s.flush(b, count, now)
}

// flush writes the frames of b. The parameter count is the number of events among them, and now is
// the time at which their step began. Without Trace.Sent, now also counts as the start of the
// write, because reading the clock costs as much as the rest of flush.
func (s *stream) flush(b *batch, count int, now timers.Time) error {
	if len(b.frames) == 0 {
		return nil
	}
	start, t := now, s.server.Trace
	if t != nil && t.Sent != nil {
		start = s.server.timers.Now()
	}
	s.writingSince.Store(int64(start))
	err := s.sender.Send(b.frames)
	s.writingSince.Store(0)
	s.events.Add(int64(count))
	s.bytes.Add(int64(b.bytes))
	s.sentVersion.Store(int64(s.lastSent))
	if t != nil && t.Sent != nil {
		s.traceWrite(b, count, start, err)
	}
	if s.heartbeatAt != 0 {
		s.heartbeatAt = now.Add(s.server.heartbeat())
	}
	b.reset()
	if err != nil {
		return &sendError{err}
	}
	return nil
}

// traceWrite calls Trace.Sent for a write of b that began at the given time.
func (s *stream) traceWrite(b *batch, events int, start timers.Time, err error) {
	end := time.Now()
	w := Write{Events: events, Bytes: b.bytes, Took: end.Sub(s.server.timers.StdTime(start)), Err: err}
	if !b.committed.IsZero() {
		w.Lag = end.Sub(b.committed)
	}
	s.server.Trace.Sent(s.ctx, s.describe(), w)
}

// A sendError is an error of a write, after which nothing more can be sent to the client.
type sendError struct{ error }

func (e *sendError) Unwrap() error { return e.error }

// A pendingPoller is a Poller that may be waiting for a version in the future. PendingError
// returns the error to report in that case, and otherwise nil.
type pendingPoller interface{ PendingError() error }

// finish ends a stream cleanly because its time is up or the server drains, with a last
// bookmark if the client allows bookmarks.
func (s *stream) finish(b *batch, now timers.Time) error {
	if p, ok := s.poller.(pendingPoller); ok && p.PendingError() != nil {
		// A clean end would imply that no event has happened since the requested version.
		return s.fail(b, p.PendingError(), now)
	}
	if err := s.sendBookmark(b, now); err != nil {
		return err
	}
	if s.drainAt.Load() != 0 {
		return errDraining
	}
	return errComplete
}

// finishWith ends a stream for a reason outside of its Source: with a last bookmark if the client
// allows bookmarks, and then with cause as an ERROR event, or cleanly if cause is errComplete.
func (s *stream) finishWith(b *batch, cause error, now timers.Time) error {
	if cause == errComplete {
		return s.finish(b, now)
	}
	if err := s.sendBookmark(b, now); err != nil {
		return err
	}
	return s.sendErrorEvent(b, cause, now)
}

// fail ends a stream whose Source returned cause: cleanly if cause is io.EOF, and otherwise with an
// ERROR event.
func (s *stream) fail(b *batch, cause error, now timers.Time) error {
	if errors.Is(cause, io.EOF) {
		return errComplete
	}
	return s.sendErrorEvent(b, cause, now)
}

// sendErrorEvent sends cause as an ERROR event. It returns cause, joined with any error of
// sending it.
func (s *stream) sendErrorEvent(b *batch, cause error, now timers.Time) error {
	frame, err := s.encoder.Error(cause)
	if err == nil {
		b.add(frame, s.encoder.WireSize(frame))
		err = s.flush(b, 0, now)
	}
	return errors.Join(cause, err)
}

// sendBookmark sends a bookmark if the client allows bookmarks and the poller's position is
// not before the events already sent.
func (s *stream) sendBookmark(b *batch, now timers.Time) error {
	at := s.poller.Position()
	if !s.bookmarks || at == 0 || at < s.lastSent {
		return nil
	}
	s.lastSent = at
	bookmark := listwatch.NewBookmark(listwatch.Describe(s.source), at, false)
	return s.send(b, []listwatch.Event{bookmark}, []frames.Ref{{}}, now)
}

// sendHeartbeat sends a heartbeat if the framing has one.
func (s *stream) sendHeartbeat(b *batch, now timers.Time) error {
	if heartbeat := s.encoder.Heartbeat(s.resumeVersion()); len(heartbeat) > 0 {
		b.add(heartbeat, s.encoder.WireSize(heartbeat))
		if err := s.flush(b, 0, now); err != nil {
			return err
		}
	}
	s.heartbeatAt = now.Add(s.server.heartbeat())
	return nil
}

// reportProgress calls Stream.Progress when events were sent, or when the client can resume for the
// first time. The parameter n is the number of events.
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
		CaughtUp: s.driver.Load() == driverIdle,
	}
	if since := timers.Time(s.writingSince.Load()); since != 0 {
		w.Writing = time.Duration(s.server.timers.Now() - since)
	}
	return w
}

// add adds a frame that takes size bytes on the wire.
func (b *batch) add(frame []byte, size int) {
	b.frames = append(b.frames, frame)
	b.bytes += size
}

func (b *batch) reset() {
	clear(b.frames)
	b.frames, b.bytes, b.committed = b.frames[:0], 0, time.Time{}
}

func (b *batch) release() {
	b.reset()
	clear(b.events[:b.polled])
	clear(b.refs[:b.polled])
	b.polled = 0
	batches.Put(b)
}
