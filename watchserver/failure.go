package watchserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// A failure is the time at which a stream ends with an error, and that error.
type failure struct {
	at    time.Time
	err   error
	abort *time.Timer // disconnects a client that does not accept the error
}

// failAt makes s end with an error at the time at, or now if that time has passed: s sends a
// bookmark if the client allows bookmarks, err as an ERROR event, and no further events. A client
// that does not accept them within abortTimeout is disconnected. If failAt is called several times,
// the earliest time counts. Any goroutine may call it.
//
// It is the only way to end a stream with an error from outside, whatever the reason: the end of
// the request's context, the expiry of credentials, or an operator.
func (s *stream) failAt(at time.Time, err error) {
	abort := func() { s.out.Sender.Close(transport.Abort) }
	wait := min(time.Until(at), forever-abortTimeout) // prevents an overflow
	next := &failure{at: at, err: err, abort: time.AfterFunc(wait+abortTimeout, abort)}
	for {
		old := s.failure.Load()
		if old != nil && !at.Before(old.at) {
			next.abort.Stop()
			return
		}
		if !s.failure.CompareAndSwap(old, next) {
			continue
		}
		if old != nil {
			old.abort.Stop()
		}
		s.wake()
		return
	}
}

// dueFailure returns the failure of s if its time has been reached, and otherwise nil.
func (s *stream) dueFailure(now time.Time) *failure {
	if f := s.failure.Load(); f != nil && !now.Before(f.at) {
		return f
	}
	return nil
}

// untilError returns UntilError, or its default.
func (e *Endpoint) untilError() error {
	if e.UntilError != nil {
		return e.UntilError
	}
	return errCredentialsExpired()
}

// End ends the open watches for which match returns true, and returns their number. It does not
// wait for their end. Each watch gets a bookmark if it allows bookmarks, and err as an ERROR event,
// preferably a *listwatch.Error, whose status tells the client whether to reconnect. If err is nil,
// the watches end cleanly, so that their clients reconnect.
//
// End does not affect a request that has not become a watch yet. To revoke access, first make new
// requests fail, and then call End. match must not call methods of s.
func (s *Server) End(match func(Watch) bool, err error) int {
	if err == nil {
		err = io.EOF // the stream ends as if its Source had ended it
	}
	n := 0
	for _, st := range s.watches.all() {
		if match(st.describe()) {
			st.failAt(time.Now(), err)
			n++
		}
	}
	return n
}

// contextError returns the reason for which ctx, the context of a request, has ended: its cause if
// that is a *listwatch.Error, status 504 after its deadline, and otherwise status 503.
func contextError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*listwatch.Error](cause); ok {
		return e
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return &listwatch.Error{
			Code: listwatch.Unavailable, Status: http.StatusGatewayTimeout, Reason: "Timeout",
			Message: "the request has reached its deadline", Err: cause,
		}
	}
	return &listwatch.Error{Code: listwatch.Unavailable, Message: "the request was canceled", Err: cause}
}
