package watchserver

import (
	"sync/atomic"

	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/transport"
)

// A wakeState records whether the driver of a stream has to take another step. Any goroutine may
// call wake and isIdle. The other methods are for the driver.
type wakeState struct{ state atomic.Int32 }

const (
	driverIdle      int32 = iota // no driver is scheduled or running
	driverRunning                // a driver is scheduled or running
	driverRewoken                // wake was called while a driver was running
	driverCompleted              // the stream has ended
)

// wake requests another step. It returns true if the caller must start the driver.
func (w *wakeState) wake() (start bool) {
	for {
		switch w.state.Load() {
		case driverIdle:
			if w.state.CompareAndSwap(driverIdle, driverRunning) {
				return true
			}
		case driverRunning:
			if w.state.CompareAndSwap(driverRunning, driverRewoken) {
				return false
			}
		default:
			return false
		}
	}
}

// begin begins a step, which covers any wake until now.
func (w *wakeState) begin() { w.state.Store(driverRunning) }

// rest returns true if the driver may return, because wake was not called since begin.
func (w *wakeState) rest() bool { return w.state.CompareAndSwap(driverRunning, driverIdle) }

// complete makes later wakes have no effect.
func (w *wakeState) complete() { w.state.Store(driverCompleted) }

func (w *wakeState) isIdle() bool { return w.state.Load() == driverIdle }

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

// drive takes steps until nothing is pending or due, or the stream is behind.
func (s *stream) drive() {
	growStack(0)
	for s.advance() {
		if s.behind {
			s.schedule()
			return
		}
	}
}

// driveScheduled takes one step and schedules the next, so that the transport can serve other
// streams in between.
func (s *stream) driveScheduled() {
	if s.advance() {
		s.schedule()
	}
}

// awaitTurn makes the driver take a step at its turn. Only few of the streams that are behind have
// a turn at the same time. So a stream with a new event, and any other request, finds a free
// processor even while many streams send their initial events. A turn ends before the first write
// of its step, because a write may block.
func (s *stream) awaitTurn() {
	s.server.entrance().Turns().Go(s.origin.Value().request.Client, func() {
		s.inTurn = true
		if t := s.scheduler(); t != nil {
			t.Run(s.driveFunc)
			return
		}
		s.driveFunc()
	})
}

// endTurn ends the turn of the step, if it has one.
func (s *stream) endTurn() {
	if s.inTurn {
		s.inTurn = false
		s.server.entrance().Turns().End()
	}
}

// send ends the turn of the step, and sends frames.
func (s *stream) send(frames [][]byte) error {
	s.endTurn()
	return s.sender.Send(frames)
}

// growStack makes the stack large enough for a write. A driver often begins with the smallest
// stack. Growing it here, where only two frames must be copied, saves a tenth of the CPU time of a
// delivery, compared with growing it within the write.
//
//go:noinline
func growStack(i int) byte {
	var space [1536]byte
	return space[i]
}

// advance takes a step of the driver and reports whether another one is needed. Otherwise the
// driver must return: the stream has ended, or waits to be woken.
func (s *stream) advance() (more bool) {
	defer func() {
		if p := recover(); p != nil {
			s.endTurn()
			s.logPanic(p)
			s.end(s.reportPanic(), errInternal())
			more = false
		}
	}()
	s.wakes.begin()
	now := s.server.timers.Now()
	var wakeAt timers.Time
	err := s.open()
	if err == nil {
		err = s.checkTransport(now)
	}
	if err == nil {
		wakeAt, err = s.step(now)
	}
	s.endTurn()
	switch {
	case err != nil:
		s.end(endFor(err), err)
		return false
	case wakeAt == now:
		s.behind = true
		return true
	}
	s.behind = false
	s.arm(wakeAt, now)
	return !s.wakes.rest()
}

// arm makes the poller wake the stream at the next event, unless the stream is paused. Unless
// wakeAt is zero, it also makes the timer wake the stream at that time.
func (s *stream) arm(wakeAt, now timers.Time) {
	s.due.arm(&s.server.timers, wakeAt, now)
	if !s.conflation.isPaused(now) {
		s.poller.Wake(s.due.timer.Call)
	}
}
