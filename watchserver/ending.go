package watchserver

import (
	"time"

	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/transport"
)

// abortTimeout limits the time that Drain waits for watches whose clients it has
// disconnected.
const abortTimeout = time.Second

// failAt makes s end with an error at the given time, or now if that time has passed. Before it
// ends, s sends a bookmark if the client allows bookmarks, and err as an ERROR event. A client that
// does not accept them within abortTimeout is disconnected. If failAt is called several times, the
// earliest time counts. Any goroutine may call it.
//
// It is the only way to end a stream with an error from outside, whatever the reason: the end of
// the request's context, the expiry of credentials, or an operator.
func (s *stream) failAt(at time.Time, err error) {
	next := &failure{at: at, err: err}
	setAbort := func() { s.server.timers.Set(&next.abort, s.server.timerAt(at).Add(abortTimeout)) }
	next.abort.Call = func() {
		if time.Now().Before(at) { // the clock was set back
			setAbort()
			return
		}
		go s.sender.Close(transport.Abort)
	}
	setAbort()
	for {
		old := s.failure.Load()
		if old != nil && !at.Before(old.at) {
			s.server.timers.Stop(&next.abort)
			return
		}
		if !s.failure.CompareAndSwap(old, next) {
			continue
		}
		if old != nil {
			s.server.timers.Stop(&old.abort)
		}
		s.wake()
		return
	}
}

// dueFailure returns the failure of s if its time has been reached, and otherwise nil. It reads the
// clock itself, because credentials expire by the wall clock, which can be set.
func (s *stream) dueFailure() *failure {
	if f := s.failure.Load(); f != nil && !time.Now().Before(f.at) {
		return f
	}
	return nil
}

// drain makes s end cleanly at t.
func (s *stream) drain(t timers.Time) {
	s.drainAt.Store(int64(t))
	s.wake()
}

// recheck ends s if its user is no longer allowed to watch, and reports whether it has ended s.
func (s *stream) recheck() bool {
	user, err := UserOf(s.ctx).current()
	if err == nil {
		err = s.authorize.check(s.ctx, user)
	}
	if err != nil {
		s.failAt(time.Now(), err)
	}
	return err != nil
}
