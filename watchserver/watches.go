package watchserver

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/transport"
)

// A watchSet holds the open watches of a Server and limits their number.
type watchSet struct {
	mu sync.Mutex
	// Guarded by mu.
	streams  []*stream
	clients  map[string]int // the number of watches of each client, open or opening
	count    int            // the sum of the values of clients
	closing  int            // removed watches whose Trace.Closed has not returned
	lastID   uint64
	draining bool
	// drainUntil is the end of the period over which the ends of the watches are spread.
	drainUntil timers.Time
	empty      chan struct{}   // closed when draining and nothing is left to wait for
	drain      context.Context // ends when draining begins; nil until it is needed
	endDrain   context.CancelFunc
}

// drainContext returns a context that ends when draining begins.
func (w *watchSet) drainContext() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drainContextLocked()
}

func (w *watchSet) drainContextLocked() context.Context {
	if w.drain == nil {
		w.drain, w.endDrain = context.WithCancel(context.Background())
	}
	return w.drain
}

// reserve counts one more watch of client. It returns an error if a limit is reached or the
// server drains.
func (w *watchSet) reserve(client string, l Limits) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.draining:
		return errShuttingDown()
	case l.Watches > 0 && w.count >= l.Watches:
		return errTooManyWatches("watches", "the server", l.Watches)
	case l.WatchesPerClient > 0 && w.clients[client] >= l.WatchesPerClient:
		return errTooManyWatches("watches_per_client", "the client", l.WatchesPerClient)
	}
	if w.clients == nil {
		w.clients = make(map[string]int)
	}
	w.clients[client]++
	w.count++
	return nil
}

// release gives back a reservation of client.
func (w *watchSet) release(client string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.releaseLocked(client)
}

func (w *watchSet) releaseLocked(client string) {
	if w.clients[client]--; w.clients[client] == 0 {
		delete(w.clients, client)
	}
	w.count--
	w.checkEmptyLocked()
}

// checkEmptyLocked lets Drain return if nothing is left to wait for.
func (w *watchSet) checkEmptyLocked() {
	if w.draining && w.count == 0 && w.closing == 0 {
		close(w.empty)
	}
}

// add adds s, for which reserve was called. From then on, other goroutines see it.
func (w *watchSet) add(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastID++
	s.id = w.lastID
	s.slot = int32(len(w.streams))
	w.streams = append(w.streams, s)
	if w.draining { // the drain began after reserve
		now := s.server.timers.Now()
		s.drain(now.Add(randomBetween(0, time.Duration(w.drainUntil-now))))
	}
}

// remove removes s and its reservation in one step, so that a new watch can open as soon as the end
// of s is visible. Drain still waits until removed is called.
func (w *watchSet) remove(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.streams) - 1
	moved := w.streams[last]
	w.streams[s.slot], moved.slot = moved, s.slot
	w.streams[last] = nil
	if w.streams = w.streams[:last]; cap(w.streams) > 4*last+64 { // many watches have ended
		w.streams = slices.Clone(w.streams)
	}
	w.closing++
	w.releaseLocked(s.origin.Value().request.Client)
}

// removed is called after remove, when Trace.Closed has returned.
func (w *watchSet) removed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing--
	w.checkEmptyLocked()
}

func (w *watchSet) isDraining() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.draining
}

// Draining reports whether Drain was called.
func (s *Server) Draining() bool { return s.watches.isDraining() }

// all returns the open watches in no particular order.
func (w *watchSet) all() []*stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.streams)
}

// startDraining makes reserve refuse all further watches. The returned channel is closed
// when no watch is left.
func (w *watchSet) startDraining(until timers.Time) (empty <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drainUntil = until
	if !w.draining {
		w.draining = true
		w.drainContextLocked()
		w.endDrain()
		w.empty = make(chan struct{})
		w.checkEmptyLocked()
	}
	return w.empty
}

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

// Recheck checks the users of all open watches again, with [User.Recheck] and [Endpoint.Authorize],
// after credentials or rights have been revoked. It ends the watches whose users are refused, and
// returns their number; it does not wait for their end. Each of these watches gets a bookmark if it
// allows bookmarks, and the error as an ERROR event, such as status 401 or 403. It does not affect
// the other watches. First make new requests fail, and then call Recheck.
func (s *Server) Recheck() int {
	s.entrance().Recheck() // first, so that a watch that opens now checks itself
	n := 0
	for _, st := range s.watches.all() {
		if st.recheck() {
			n++
		}
	}
	return n
}

// recheck ends s if its user is no longer allowed to watch, and reports whether it has ended s.
func (s *stream) recheck() bool {
	user, err := UserOf(s.ctx), error(nil)
	if user.Recheck != nil {
		user, err = accept(user.Recheck())
	}
	if err == nil {
		err = s.authorize.check(s.ctx, user)
	}
	if err != nil {
		s.failAt(time.Now(), err)
	}
	return err != nil
}
