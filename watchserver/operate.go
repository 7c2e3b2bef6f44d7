package watchserver

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// Watches returns a description of each open watch, oldest first.
func (s *Server) Watches() []Watch {
	streams := s.watches.all()
	all := make([]Watch, len(streams))
	for i, st := range streams {
		all[i] = st.describe()
	}
	slices.SortFunc(all, func(a, b Watch) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Usage returns the resources in use, and their limits. In limit, zero means no limit. HistoryBytes
// has no limit of its own.
func (s *Server) Usage() (used, limit Usage) {
	u, l := s.entrance().Usage()
	return Usage(u), Usage(l)
}

// Draining reports whether Drain was called.
func (s *Server) Draining() bool { return s.watches.isDraining() }

// Drain ends all watches, on all transports. The server refuses new watches with status 503
// and Retry-After. It still serves lists, so shut down the http.Server after Drain.
//
// Each watch gets its pending events, a last bookmark if it allows bookmarks, and a clean
// end. Timing.DrainSpread is the period over which the ends are spread. The period is
// shortened if it would exceed the deadline of ctx.
//
// Drain returns nil when all watches have ended and Trace.Closed has returned for each. If ctx
// ends first, Drain disconnects the remaining clients, waits up to a second for their watches, and
// returns ctx.Err().
func (s *Server) Drain(ctx context.Context) error {
	now := s.timers.Now()
	period := max(s.Timing.DrainSpread, 0)
	if deadline, ok := ctx.Deadline(); ok {
		// Reserve a tenth of the time for the last watches to end.
		period = min(period, max(time.Until(deadline)*9/10, 0))
	}
	empty := s.watches.startDraining(now.Add(period))
	for _, st := range s.watches.all() {
		st.drain(now.Add(randomBetween(0, period)))
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
	}
	for _, st := range s.watches.all() {
		st.drain(s.timers.Now())
		st.sender.Close(transport.Abort) // a blocked write fails, and the stream ends
	}
	select {
	case <-empty:
	case <-time.After(abortTimeout): // a watch may be blocked, for example in its source
	}
	return ctx.Err()
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
		err = errComplete
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

// Recheck checks the users of all open watches again, with [User.Recheck] and [Endpoint.Recheck].
// Call it after credentials or rights have been revoked, when new requests already fail. Recheck
// ends the watches whose users are refused, and returns their number. It does not wait for their
// end. Each of these watches gets a bookmark if it allows bookmarks, and the error as an ERROR
// event, such as status 401 or 403. The other watches are not affected.
//
// Recheck returns when all functions have returned. It calls up to 16 of them at once, so that a
// slow one does not delay the others.
func (s *Server) Recheck() int {
	s.entrance().Recheck() // first, so that a watch that opens now checks itself
	var ended atomic.Int64
	var calls sync.WaitGroup
	turns := make(chan struct{}, maxRechecks)
	for _, st := range s.watches.all() {
		turns <- struct{}{}
		calls.Go(func() {
			defer func() { <-turns }()
			if st.recheck() {
				ended.Add(1)
			}
		})
	}
	calls.Wait()
	return int(ended.Load())
}

// maxRechecks is the number of watches that Recheck checks at once.
const maxRechecks = 16
