package watchserver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
	"unique"

	"github.com/listwatch/listwatch"
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

// An output is the part of a stream that encodes and writes. Its driver owns it, except for the
// counters.
type output struct {
	sender   transport.Sender
	encoder  wire.StreamEncoder
	lastSent listwatch.Version // the last version sent; zero during the initial events

	// Written by the driver, read by any goroutine.
	events, bytes, sentVersion atomic.Int64
	// writingSince is the start of the current write, a timers.Time. It is zero if no write is in
	// progress.
	writingSince atomic.Int64
}

// deadlines holds the times at which a stream has something to send without an event. Its driver
// owns it. Each time is zero if nothing is due.
type deadlines struct {
	timer       timers.Entry // its Call is wake
	endAt       timers.Time  // when the watch times out
	bookmarkAt  timers.Time  // when the next bookmark is due
	heartbeatAt timers.Time  // when the next heartbeat is due
	bookmarks   bool         // the client allows bookmarks; immutable
	// bookmarkDeferred is true while a bookmark that was due waits for the next segment.
	bookmarkDeferred bool
	conflation       *conflation // nil if the stream sends every event
}

// A driver takes the steps of a stream.
type driver struct {
	state atomic.Int32 // a driverState
	// driveFunc is stream.drive, or stream.driveScheduled if the sender is a transport.Scheduler.
	// It is evaluated once, because each evaluation allocates.
	driveFunc    func()
	disconnected atomic.Bool // the transport has called the function passed to OnDone
	ownsConn     bool        // the transport reads the connection; immutable

	// Owned by the driver.

	// behind is true while the stream has initial events, or many other events, to send. Then each
	// step waits for a turn; see awaitTurn.
	behind       bool
	inTurn       bool // the step has a turn
	started      bool // open was called
	reportedSync bool // Stream.Progress was called with a version
}

// A failure is the time at which a stream ends with an error, and that error.
type failure struct {
	at    time.Time
	err   error
	abort timers.Entry // disconnects a client that does not accept the error
}

// A driverState is the state of the driver of a stream.
type driverState = int32

const (
	driverIdle      driverState = iota // no driver is scheduled or running
	driverRunning                      // a driver is scheduled or running
	driverRewoken                      // wake was called while a driver was running
	driverCompleted                    // the stream has ended
)

// wake makes the driver take another step. It starts the driver unless it is scheduled or running.
// It never blocks.
func (s *stream) wake() {
	for {
		switch s.state.Load() {
		case driverIdle:
			if s.state.CompareAndSwap(driverIdle, driverRunning) {
				s.schedule()
				return
			}
		case driverRunning:
			if s.state.CompareAndSwap(driverRunning, driverRewoken) {
				return
			}
		default:
			return
		}
	}
}

// scheduler returns the transport's scheduler, or nil if it has none.
func (s *stream) scheduler() transport.Scheduler {
	t, _ := s.sender.(transport.Scheduler)
	return t
}

// schedule starts the driver. If the stream is behind, the driver starts at its turn.
func (s *stream) schedule() {
	switch t := s.scheduler(); {
	case t != nil && s.behind:
		t.Go(s.awaitTurn) // a client that accepts nothing must not get a turn
	case t != nil:
		t.Go(s.driveFunc)
	case s.behind:
		s.awaitTurn()
	default:
		go s.driveFunc()
	}
}

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
		Opened: time.Now().Add(-time.Duration(s.server.timers.Now() - s.opened)),
		Events: s.events.Load(), Bytes: s.bytes.Load(), Version: listwatch.Version(s.sentVersion.Load()),
		CaughtUp: s.state.Load() == driverIdle,
	}
	if since := timers.Time(s.writingSince.Load()); since != 0 {
		w.Writing = time.Duration(s.server.timers.Now() - since)
	}
	return w
}
