package watchserver

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// A batch holds the working memory of one step. It is pooled so that idle streams hold none.
type batch struct {
	events [64]listwatch.Event
	refs   [64]frames.Ref // the caches of events
	polled int            // the number of events

	// The content of the next write.
	frames [][]byte
	bytes  int
	count  int // the number of events among frames
	// block is the text of the last initial events, which are compressed together; see
	// [stream.addInitial]. blockCount is their number.
	block      []byte
	blockCount int
	// started is the time at which the work for this write began. It is zero if another write of
	// the same step has ended since then.
	started timers.Time
	// committed is the commit time of the oldest event in frames that was committed after the
	// watch was opened. It is zero if there is none.
	committed time.Time
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// newBatch returns a batch for a step that begins now. The caller must call release.
func newBatch(now timers.Time) *batch {
	b := batches.Get().(*batch)
	b.started = now
	return b
}

// add adds a frame that takes size bytes on the wire.
func (b *batch) add(frame []byte, size int) {
	b.frames = append(b.frames, frame)
	b.bytes += size
}

func (b *batch) reset() {
	clear(b.frames)
	b.frames, b.bytes, b.count, b.started, b.committed = b.frames[:0], 0, 0, 0, time.Time{}
}

// maxKeptBlock is the size of the largest block whose memory is reused.
const maxKeptBlock = 512 << 10

func (b *batch) release() {
	b.reset()
	if b.block, b.blockCount = b.block[:0], 0; cap(b.block) > maxKeptBlock {
		b.block = nil
	}
	clear(b.events[:b.polled])
	clear(b.refs[:b.polled])
	b.polled = 0
	batches.Put(b)
}

// counters hold the amount that a stream has sent. The driver of the stream writes them, and any
// goroutine may read them.
type counters struct {
	events, bytes, version atomic.Int64
	// writingSince is the start of the current write, a timers.Time. It is zero if no write is in
	// progress.
	writingSince atomic.Int64
}

// begin records that a write began at the given time.
func (c *counters) begin(at timers.Time) { c.writingSince.Store(int64(at)) }

// end records that the write of b has ended. last is the last version sent.
func (c *counters) end(b *batch, last listwatch.Version) {
	c.writingSince.Store(0)
	c.events.Add(int64(b.count))
	c.bytes.Add(int64(b.bytes))
	c.version.Store(int64(last))
}

// describe sets the fields of w that c counts.
func (c *counters) describe(w *Watch, now timers.Time) {
	w.Events, w.Bytes, w.Version = c.events.Load(), c.bytes.Load(), listwatch.Version(c.version.Load())
	if since := timers.Time(c.writingSince.Load()); since != 0 {
		w.Writing = time.Duration(now - since)
	}
}

// sendPolled sends the events that were polled into b, in one write unless they exceed batchBytes.
func (s *stream) sendPolled(b *batch) error {
	for i := range b.polled {
		if err := s.addEvent(b, &b.events[i], b.refs[i]); err != nil {
			return err
		}
	}
	return s.flush(b)
}

// addEvent adds e to b. If b has no room for it, addEvent first writes b. If e cannot be encoded,
// the stream ends.
func (s *stream) addEvent(b *batch, e *listwatch.Event, ref frames.Ref) error {
	if e.Initial && s.encoder.CompressesInitialBlocks() {
		return s.addInitial(b, e, ref)
	}
	b.endBlock(s)
	frame, err := s.encode(e, ref)
	if err != nil {
		// Send the preceding events before the error.
		if err := s.flush(b); err != nil {
			return err
		}
		return s.fail(b, err)
	}
	size := s.encoder.WireSize(frame)
	if len(b.frames) > 0 && b.bytes+size > s.server.batchBytes() {
		if err := s.flush(b); err != nil {
			return err
		}
	}
	if s.due.deferred && s.encoder.StartsSegment() {
		if err := s.addDeferredBookmark(b, e.Version-1); err != nil {
			return s.fail(b, err)
		}
	}
	b.add(frame, size)
	b.count++
	if b.committed.IsZero() && s.server.timers.Time(e.Committed) >= s.opened {
		b.committed = e.Committed
	}
	if !e.Initial {
		s.lastSent = e.Version
	}
	return nil
}

// addInitial adds e, an initial event, to the block of b.
func (s *stream) addInitial(b *batch, e *listwatch.Event, ref frames.Ref) error {
	start, block := len(b.block), []byte(nil)
	err := listwatch.CheckVersion(s.source, e.Version)
	if err == nil {
		block, err = s.encoder.AppendInitial(b.block, *e, ref)
	}
	if err != nil {
		if err := s.flush(b); err != nil {
			return err
		}
		return s.fail(b, err)
	}
	b.block = block
	b.blockCount++
	if !s.server.entrance().BlockCache().EndsBlock(len(block), block[start:]) {
		return nil
	}
	if b.endBlock(s); b.bytes < s.server.batchBytes() {
		return nil
	}
	return s.flush(b)
}

// endBlock adds the block of b, unless it is empty, to the frames of b, for s. Equal blocks of
// different streams are compressed once.
func (b *batch) endBlock(s *stream) {
	if b.blockCount == 0 {
		return
	}
	frame := s.encoder.BlockFrame(b.block, s.server.entrance().BlockCache())
	b.add(frame, s.encoder.WireSize(frame))
	b.count += b.blockCount
	b.block, b.blockCount = b.block[:0], 0
}

func (s *stream) encode(e *listwatch.Event, ref frames.Ref) ([]byte, error) {
	if err := listwatch.CheckVersion(s.source, e.Version); err != nil {
		return nil, err
	}
	return s.encoder.Encode(*e, ref)
}

// flush writes the frames of b. Unless Trace.Sent needs the exact time, the beginning of the step
// counts as the start of its first write, because reading the clock costs as much as the rest of
// flush.
func (s *stream) flush(b *batch) error {
	b.endBlock(s)
	if len(b.frames) == 0 {
		return nil
	}
	start, trace := b.started, s.server.Trace
	traced := trace != nil && trace.Sent != nil
	if start == 0 || traced {
		start = s.server.timers.Now()
	}
	s.sent.begin(start)
	err := s.send(b.frames)
	s.sent.end(b, s.lastSent)
	if traced {
		s.traceWrite(b, start, err)
	}
	if s.due.heartbeat != 0 {
		s.due.heartbeat = start.Add(s.server.Timing.heartbeat())
	}
	b.reset()
	if err != nil {
		return &sendError{err}
	}
	return nil
}

// traceWrite calls Trace.Sent for a write of b that began at the given time.
func (s *stream) traceWrite(b *batch, start timers.Time, err error) {
	end := time.Now()
	w := Write{Events: b.count, Bytes: b.bytes, Took: end.Sub(s.server.timers.StdTime(start)), Err: err}
	if !b.committed.IsZero() {
		w.Lag = end.Sub(b.committed)
	}
	s.server.Trace.Sent(s.ctx, s.describe(), w)
}

// A sendError is an error of a write, after which nothing more can be sent to the client.
type sendError struct{ error }

func (e *sendError) Unwrap() error { return e.error }

// sendErrorEvent sends cause as an ERROR event. It returns cause, joined with any error of
// sending it.
func (s *stream) sendErrorEvent(b *batch, cause error) error {
	frame, err := s.encoder.Error(cause)
	if err == nil {
		b.add(frame, s.encoder.WireSize(frame))
		err = s.flush(b)
	}
	return errors.Join(cause, err)
}

// sendBookmark sends a bookmark if the client allows bookmarks and the poller's position is
// not before the events already sent.
func (s *stream) sendBookmark(b *batch) error {
	at := s.poller.Progress().State
	if !s.due.bookmarks || at.Version == 0 || at.Version < s.lastSent {
		return nil
	}
	s.lastSent = at.Version
	bookmark := listwatch.NewBookmark(listwatch.Describe(s.source), at)
	if err := s.addEvent(b, &bookmark, frames.Ref{}); err != nil {
		return err
	}
	return s.flush(b)
}

// addDeferredBookmark adds the deferred bookmark to b, before an event that starts a segment. at is
// the version before that event. Like sendBookmark, it omits the bookmark if the stream has already
// sent a later version, as when the previous event has the same version as this one.
func (s *stream) addDeferredBookmark(b *batch, at listwatch.Version) error {
	if at < s.lastSent {
		return nil
	}
	state := listwatch.State{Version: at, ID: s.poller.Progress().ID}
	frame, err := s.encoder.BeforeSegment(listwatch.NewBookmark(listwatch.Describe(s.source), state))
	if err != nil {
		return err
	}
	b.add(frame, s.encoder.WireSize(frame))
	b.count++
	s.lastSent = at
	s.due.scheduleBookmark(&s.server.Timing, s.server.timers.Now())
	return nil
}

// sendHeartbeat sends a heartbeat if the framing has one.
func (s *stream) sendHeartbeat(b *batch, now timers.Time) error {
	s.due.heartbeat = now.Add(s.server.Timing.heartbeat())
	heartbeat := s.encoder.Heartbeat(s.resumeVersion())
	if len(heartbeat) == 0 {
		return nil
	}
	b.add(heartbeat, s.encoder.WireSize(heartbeat))
	return s.flush(b)
}
