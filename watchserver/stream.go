package watchserver

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
	"unique"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/internal/wire"
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
	source listwatch.Source
	origin unique.Handle[origin]
	id     uint64 // Watch.ID
	opened timers.Time
	*attachment
	// driveFunc is drive, or driveScheduled if the sender is a transport.Scheduler. It is evaluated
	// once, because each evaluation allocates.
	driveFunc func()

	slot     int32 // the index in watchSet.streams, guarded by its mutex
	ownsConn bool  // the transport reads the connection; immutable

	// Used by any goroutine.
	disconnected atomic.Bool // the transport has called the function passed to OnDone
	wakes        wakeState
	sent         counters
	ending       ending

	// Owned by the driver, except for Wake and Close of the poller, and Close of the sender.
	poller     framePoller
	sender     transport.Sender
	encoder    wire.StreamEncoder
	due        deadlines
	conflation *conflation       // nil if the stream sends every event
	lastSent   listwatch.Version // the last version sent; zero during the initial events
	// behind is true while the stream has initial events, or many other events, to send. Then each
	// step waits for a turn; see awaitTurn.
	behind       bool
	inTurn       bool // the step has a turn
	started      bool // open was called
	reportedSync bool // Stream.Progress was called with a version
}

// An origin describes the request of a watch. Streams with equal requests share one origin. The
// streams of one connection often have equal requests.
type origin struct {
	request                           Request
	projection                        string // see [listwatch.Projection.String]
	transport, mediaType, compression string
	weight                            int // of the watch; see weightOf
}

// claim names the limits that the watch counts against.
func (o *origin) claim() claim {
	return claim{o.request.Client, o.weight, o.request.Resource, o.projection}
}

// An attachment connects a stream to its request, its handler and its transport. Most detached
// streams need none of its fields, and share the variable detached.
type attachment struct {
	// ctx has the values of the request. It ends with the request, unless the stream is detached.
	ctx       context.Context
	authorize authorizer // Endpoint.Recheck, or its default
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

// describe returns the current state of s.
func (s *stream) describe() Watch {
	o := s.origin.Value()
	w := Watch{
		Request: o.request, ID: s.id, Transport: o.transport, MediaType: o.mediaType, Compression: o.compression,
		Fields: o.projection,
		// Compute Opened from the current time, because the clock may have been set since the watch
		// was opened.
		Opened:   time.Now().Add(-time.Duration(s.server.timers.Now() - s.opened)),
		CaughtUp: s.wakes.isIdle(),
	}
	s.sent.describe(&w, s.server.timers.Now())
	return w
}

func newStream(s *Server, source listwatch.Source, q request, w listwatch.Watcher, out *transport.Stream) *stream {
	now := s.timers.Now()
	st := &stream{
		server: s, source: source, opened: now, sender: out.Sender, ownsConn: out.Serve != nil,
		poller: asFramePoller(w, s.logger()), behind: q.SendsInitialEvents(),
	}
	if st.scheduler() != nil {
		st.driveFunc = st.driveScheduled
	} else {
		st.driveFunc = st.drive
	}
	st.due.init(&s.Timing, q, now)
	st.due.timer.Call = st.wake // evaluated once, because each evaluation allocates
	st.conflation = newConflation(q.Query, st.poller)
	return st
}

// wake makes the driver take another step. It starts the driver unless it is scheduled or running.
// It never blocks.
func (s *stream) wake() {
	if s.wakes.wake() {
		s.schedule()
	}
}

// run opens the stream and returns when the stream has ended. When the request's context ends, the
// stream fails with contextError. An error means that the handler must panic to abort the response.
func (s *stream) run(out *transport.Stream) (abort error) {
	stop := context.AfterFunc(s.ctx, func() { s.failAt(time.Now(), apihttp.ContextError(s.ctx)) })
	defer stop()
	s.start(out)
	if out.Serve != nil {
		out.Serve()
	}
	<-s.closed
	return s.abort
}

// start wakes the driver for the first time, and arranges that a disconnect of the client or a
// closed Stream.Finish wakes the driver again.
func (s *stream) start(out *transport.Stream) {
	s.wake()
	out.OnDone(func() {
		s.disconnected.Store(true)
		s.wake()
	})
	if s.finishing != nil {
		go func() {
			select {
			case <-s.finishing:
				s.wake()
			case <-s.closed:
			}
		}()
	}
}

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
	if f := s.ending.dueFailure(); f != nil {
		return now, s.finishWith(b, f.err)
	}
	// Load the time of the drain before Poll, so that all events committed before it are sent.
	drainAt := s.ending.drainAt()
	var n int
	var pollErr error
	if isDue(drainAt, now) || !s.conflation.isPaused(now) {
		n, pollErr = s.poller.PollFrames(b.events[:], b.refs[:])
	}
	b.polled = n
	if err := s.sendPolled(b); err != nil {
		return now, err
	}
	if s.progress != nil {
		s.reportProgress(n)
	}
	if s.conflation != nil {
		s.conflation.sentEvents(n, s.poller.Progress().More, &s.server.timers)
	}
	// A stream whose time is up ends even if more events are pending. A draining stream sends the
	// pending events first.
	if n == len(b.events) && !isDue(s.due.end, now) {
		return now, nil
	}
	if pollErr != nil {
		return now, s.fail(b, pollErr)
	}
	if isDue(s.due.end, now) || isDue(drainAt, now) {
		if !isDue(s.due.end, now) && s.mayHaveMore(n) {
			return now, nil
		}
		return now, s.finish(b)
	}
	if isDue(s.due.bookmark, now) && !s.due.deferBookmark(now, s.encoder.InSegment(s.server.timers.StdTime(now))) {
		if err := s.sendBookmark(b); err != nil {
			return now, err
		}
		s.due.scheduleBookmark(&s.server.Timing, now)
	}
	if isDue(s.due.heartbeat, now) {
		if err := s.sendHeartbeat(b, now); err != nil {
			return now, err
		}
	}
	return s.nextDue(), nil
}

// mayHaveMore reports whether more events may be pending, although Poll has just returned n events,
// fewer than there was room for.
func (s *stream) mayHaveMore(n int) bool {
	// With conflation, n events are a group, and others may follow it.
	return s.conflation != nil && n > 0 || s.poller.Progress().More
}

// nextDue returns the earliest time at which s has something to send, or the zero time if there is
// none.
func (s *stream) nextDue() timers.Time {
	next := earliest(s.due.end, s.due.bookmark, s.due.heartbeat, s.conflation.pausedUntil(), s.ending.drainAt())
	if f := s.ending.failure.Load(); f != nil {
		next = earliest(next, s.server.timerAt(f.at))
	}
	return next
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
	if s.ending.drainAt() != 0 {
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

// open calls Trace.Opened and sends the opening of the framing. Only the first call has an effect.
func (s *stream) open() error {
	if s.started {
		return nil
	}
	s.started = true
	if t := s.server.Trace; t != nil && t.Opened != nil {
		t.Opened(s.ctx, s.describe())
	}
	if opening := s.encoder.Opening(); len(opening) > 0 {
		if err := s.send([][]byte{opening}); err != nil {
			return &sendError{err}
		}
	}
	return nil
}

// checkTransport handles a disconnect. It also handles a closed Stream.Finish, which means that the
// transport requests the end of the stream.
func (s *stream) checkTransport(now timers.Time) error {
	select {
	case <-s.finishing:
		if s.due.end == 0 || now < s.due.end {
			s.due.end = now
		}
	default:
	}
	if !s.disconnected.Load() {
		return nil
	}
	if s.ctx.Err() == nil {
		return errClientGone
	}
	// Some transports report a disconnect when ctx ends, although their clients are still connected
	// and can receive the error.
	s.failAt(time.Now(), apihttp.ContextError(s.ctx))
	return nil
}

// fail ends a stream whose Source returned cause: cleanly if cause is io.EOF, and otherwise with an
// ERROR event.
func (s *stream) fail(b *batch, cause error) error {
	if errors.Is(cause, io.EOF) {
		return errComplete
	}
	return s.sendErrorEvent(b, cause)
}

// resumeVersion returns a version that the client may resume from, or zero within the
// initial events.
func (s *stream) resumeVersion() listwatch.Version {
	if at := s.poller.Progress().Version; at >= s.lastSent {
		return at
	}
	return 0
}
