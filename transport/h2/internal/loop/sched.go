package loop

import "time"

// A scheduler determines which streams may send, in which order and how much. The mutex of the
// connection guards it.
type scheduler struct {
	ready   queue
	blocked queue // the streams that wait only for the connection's window to open
	// stalled holds the streams that found a window empty and have not sent anything since. It also
	// has the times at which they are reset if a window is still empty.
	stalled deadlines

	window       int64  // the bytes that the server may send on the connection
	streamWindow int64  // the initial window of a stream, which the client has set
	frameSize    uint32 // the maximum size of a frame that the client accepts
}

// A place is the place of a stream in the order of sending.
type place uint8

const (
	placeNone     place = iota
	placeReady          // the stream is in scheduler.ready
	placeBlocked        // the stream is in scheduler.blocked
	placeStepping       // the stream's step is running
)

// add adds st to the queue of ready streams, unless it is in the queue or its step is running. A
// stream that waits for the connection's window keeps its place, unless only END_STREAM is left,
// which needs no window.
func (s *scheduler) add(st *stream) {
	if o := st.out; st.place == placeBlocked && o != nil && o.end && o.size() == 0 {
		s.leave(st)
	}
	if st.place == placeNone {
		st.place = placeReady
		s.ready.push(st)
	}
}

// leave removes st from the queue of streams that wait for the connection's window.
func (s *scheduler) leave(st *stream) {
	if st.place == placeBlocked {
		st.place = placeNone
		s.blocked.remove(st)
	}
}

// next removes and returns the stream whose turn it is, or returns nil. The streams that have
// waited for the connection's window come first, as long as it is open.
func (s *scheduler) next() *stream {
	if st := s.blocked.head; st != nil && s.window > 0 {
		s.leave(st)
		return st
	}
	if s.ready.head == nil {
		return nil
	}
	st := s.ready.pop()
	st.place = placeNone
	return st
}

// isFree reports whether no stream waits for its turn.
func (s *scheduler) isFree() bool { return s.ready.head == nil && s.blocked.head == nil }

// block makes st wait until its window and the connection's window are open, and returns the time
// at which st is reset. If st was blocked before and has not sent anything since, the earlier time
// still applies.
func (s *scheduler) block(st *stream) (until time.Time) {
	until, ok := s.stalled[st]
	if timeout := st.timeout(); !ok && timeout > 0 {
		until = time.Now().Add(timeout)
	}
	s.stalled.set(st, until)
	if st.window() > 0 {
		st.place = placeBlocked
		s.blocked.push(st)
	}
	return until
}

// endStall ends the stall of st, after st has sent something or has ended.
func (s *scheduler) endStall(st *stream) { s.stalled.remove(st) }

// isWaiting reports whether st waits for a window, and its own is open.
func (s *scheduler) isWaiting(st *stream) bool {
	_, ok := s.stalled[st]
	return ok && st.place == placeNone && st.window() > 0
}

// deadlines holds streams, with the times at which they are reset. The zero time means never.
type deadlines map[*stream]time.Time

func (d *deadlines) set(st *stream, at time.Time) {
	if *d == nil {
		*d = make(deadlines)
	}
	(*d)[st] = at
}

func (d *deadlines) remove(st *stream) {
	if *d == nil {
		return
	}
	if delete(*d, st); len(*d) == 0 {
		*d = nil // release the map, because it never shrinks
	}
}
