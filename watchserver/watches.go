package watchserver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch/internal/timers"
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

// release undoes reserve.
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
