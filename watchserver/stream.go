package watchserver

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// A stream is one open watch. It is driven by calls of step, which never waits for anything but a write.
type stream struct {
	// Immutable after construction.
	server *Server
	poller listwatch.Poller
	out    *transport.Stream // but for its Encoder, which the driver owns
	about  Watch             // its counters are not used
	marks  bool              // bookmarks were asked for
	end    time.Time         // zero: never
	source listwatch.Description
	wakeup chan struct{} // one place; filled by wake

	// Owned by the driver.
	batchBytes int
	bookmark   time.Time         // when the next is due; zero: none
	beat       time.Time         // when silence has lasted long enough; zero: never
	version    listwatch.Version // of the newest event or bookmark that was sent

	// Written by the driver, read by anyone.
	events, bytes, sent atomic.Int64
	writing             atomic.Int64 // when the write under way began, in nanoseconds since the stream did; zero: there is none

	drainAt atomic.Pointer[time.Time] // when to end because the server drains; nil: it doesn't
}

// batch is what a step works with: it is borrowed, so that an idle stream has none.
type batch struct {
	events [64]listwatch.Event
	frames [][]byte
	bytes  int
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// errDone ends a stream that is complete; a drain ends it with errDraining.
var (
	errDone     = errors.New("complete")
	errDraining = errors.New("the server drains")
)

// step sends what is there, and what is due at now. It returns when it wants to be called again if the poller does not wake it
// before; at once, where more may be there. With an error the stream is over and nothing more may be sent: [errDone],
// [errDraining], or what went wrong, of which the client has been told if it could be.
func (s *stream) step(now time.Time) (again time.Time, err error) {
	b := batches.Get().(*batch)
	defer b.release()
	drain := s.drainAt.Load() // before Poll, so that what was committed before the drain began goes out before the end
	n, err := s.poller.Poll(b.events[:])
	if n > 0 {
		if err := s.send(b, b.events[:n], now); err != nil {
			return now, err
		}
		// A stream whose time is up ends however busy it is; one that drains first gets what is ready for it.
		if n == len(b.events) && !due(s.end, now) {
			return now, nil
		}
	}
	if err != nil {
		return now, s.fail(b, err, now)
	}
	if due(s.end, now) || drain != nil && due(*drain, now) {
		return now, s.finish(b, now)
	}
	if due(s.bookmark, now) {
		if err := s.sendBookmark(b, now); err != nil {
			return now, err
		}
		s.bookmark = s.nextBookmark(now)
	}
	if due(s.beat, now) {
		if beat := s.out.Encoder.Heartbeat(s.resumable()); len(beat) > 0 {
			b.add(beat, s.out.Encoder.WireSize(beat))
			if err := s.flush(b, 0, now); err != nil {
				return now, err
			}
		}
		s.beat = now.Add(s.server.heartbeat())
	}
	return s.nextDue(), nil
}

// send encodes events and writes them, as one write unless they are too many bytes for one.
func (s *stream) send(b *batch, events []listwatch.Event, now time.Time) error {
	count := 0
	for i := range events {
		frame, err := s.out.Encoder.Event(events[i])
		if err != nil {
			// What came before has its place before the error.
			if err := s.flush(b, count, now); err != nil {
				return err
			}
			return s.fail(b, err, now)
		}
		size := s.out.Encoder.WireSize(frame)
		s.out.Encoder = s.out.Encoder.AfterFirst()
		if len(b.frames) > 0 && b.bytes+size > s.batchBytes {
			if err := s.flush(b, count, now); err != nil {
				return err
			}
			count = 0
		}
		b.add(frame, size)
		count++
		if !events[i].Initial {
			s.version = events[i].Version
		}
	}
	return s.flush(b, count, now)
}

// flush writes what b holds, of which count are events.
func (s *stream) flush(b *batch, count int, now time.Time) error {
	if len(b.frames) == 0 {
		return nil
	}
	s.writing.Store(max(1, int64(now.Sub(s.about.Opened))))
	err := s.out.Sender.Send(b.frames)
	s.writing.Store(0)
	s.events.Add(int64(count))
	s.bytes.Add(int64(b.bytes))
	s.sent.Store(int64(s.version))
	s.server.Trace.sent(s, count, b.bytes, now)
	if s.beat != (time.Time{}) {
		s.beat = now.Add(s.server.heartbeat())
	}
	b.reset()
	if err != nil {
		return &sendError{err}
	}
	return nil
}

// A sendError is what ended a stream whose client can't be told anything any more.
type sendError struct{ error }

func (e *sendError) Unwrap() error { return e.error }

// An awaiter is a Poller that may still wait for a version in the future, which is then its error.
type awaiter interface{ PendingError() error }

// finish ends a stream whose time is up, or because the server drains: with a last bookmark where those were asked for.
func (s *stream) finish(b *batch, now time.Time) error {
	if a, ok := s.poller.(awaiter); ok && a.PendingError() != nil {
		return s.fail(b, a.PendingError(), now) // a clean end would say that nothing has happened since that version
	}
	if err := s.sendBookmark(b, now); err != nil {
		return err
	}
	if s.drainAt.Load() != nil {
		return errDraining
	}
	return errDone
}

// fail tells the client why the stream ends, and returns that.
func (s *stream) fail(b *batch, cause error, now time.Time) error {
	if errors.Is(cause, io.EOF) {
		return errDone
	}
	frame, err := s.out.Encoder.Error(cause)
	if err == nil {
		b.add(frame, s.out.Encoder.WireSize(frame))
		err = s.flush(b, 0, now)
	}
	return errors.Join(cause, err)
}

// sendBookmark sends one, where bookmarks are allowed and it would be true: at or after everything sent, before everything to come.
func (s *stream) sendBookmark(b *batch, now time.Time) error {
	at := s.poller.Position()
	if !s.marks || at == 0 || at < s.version {
		return nil
	}
	s.version = at
	return s.send(b, []listwatch.Event{listwatch.NewBookmark(s.source, at, false)}, now)
}

// resumable returns the version that the client may resume from; zero within the initial events.
func (s *stream) resumable() listwatch.Version {
	if at := s.poller.Position(); at >= s.version {
		return at
	}
	return 0
}

func due(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// beforeEnd is how long before the end of its time a stream sends a bookmark, as kube-apiserver does.
const beforeEnd = 2 * time.Second

// nextBookmark returns when a bookmark is due after the one at now: about an interval later, and shortly before the end.
func (s *stream) nextBookmark(now time.Time) time.Time {
	interval := s.server.Timing.or(s.server.Timing.Bookmark, DefaultBookmark)
	if !s.marks || interval < 0 {
		return time.Time{}
	}
	next := now.Add(spread(interval*3/4, interval*5/4))
	if last := s.end.Add(-beforeEnd); !s.end.IsZero() && last.After(now) && last.Before(next) {
		return last
	}
	return next
}

// nextDue returns the first time at which something is due; zero: nothing is.
func (s *stream) nextDue() time.Time {
	next := s.end
	for _, t := range [...]time.Time{s.bookmark, s.beat} {
		if next.IsZero() || !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	if at := s.drainAt.Load(); at != nil && (next.IsZero() || at.Before(next)) {
		next = *at
	}
	return next
}

// add takes a frame of which size bytes go out.
func (b *batch) add(frame []byte, size int) {
	b.frames = append(b.frames, frame)
	b.bytes += size
}

func (b *batch) reset() {
	clear(b.frames)
	b.frames, b.bytes = b.frames[:0], 0
}

func (b *batch) release() {
	b.reset()
	clear(b.events[:])
	batches.Put(b)
}
