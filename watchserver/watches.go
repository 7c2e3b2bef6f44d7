package watchserver

import (
	"cmp"
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
	streams []*stream
	clients map[string]int // the weights of the watches of each client, open or opening
	count   int            // the sum of the values of clients
	// projections holds the number of watches with each projection, open or opening.
	projections map[Resource]map[string]int
	closing     int // removed watches whose Trace.Closed has not returned
	lastID      uint64
	draining    bool
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

// A claim names the limits that a watch counts against. projection is empty if the watch has none.
type claim struct {
	client     string
	weight     int // the number of watches that the watch counts as
	resource   Resource
	projection string
}

// reserve counts one more watch. It returns an error if a limit is reached or the server drains.
func (w *watchSet) reserve(c claim, l Limits) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	others, limit := w.projections[c.resource], cmp.Or(l.Projections, DefaultProjections)
	switch {
	case w.draining:
		return errShuttingDown()
	case l.Watches > 0 && w.count+c.weight > l.Watches:
		return errTooManyWatches("watches", "the server", w.count, l.Watches)
	case l.WatchesPerClient > 0 && w.clients[c.client]+c.weight > l.WatchesPerClient:
		return errTooManyWatches("watches_per_client", "the client", w.clients[c.client], l.WatchesPerClient)
	case limit > 0 && c.projection != "" && others[c.projection] == 0 && len(others) >= limit:
		return errTooManyProjections(limit)
	}
	if w.clients == nil {
		w.clients = make(map[string]int)
	}
	w.clients[c.client] += c.weight
	w.count += c.weight
	if c.projection != "" {
		if others == nil {
			others = make(map[string]int)
			if w.projections == nil {
				w.projections = make(map[Resource]map[string]int)
			}
			w.projections[c.resource] = others
		}
		others[c.projection]++
	}
	return nil
}

// release undoes reserve.
func (w *watchSet) release(c claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.releaseLocked(c)
}

func (w *watchSet) releaseLocked(c claim) {
	subtract(w.clients, c.client, c.weight)
	if c.projection != "" {
		if subtract(w.projections[c.resource], c.projection, 1); len(w.projections[c.resource]) == 0 {
			delete(w.projections, c.resource)
		}
	}
	w.count -= c.weight
	w.checkEmptyLocked()
}

// subtract subtracts n from a count. Counts of zero have no entry.
func subtract(counts map[string]int, key string, n int) {
	if counts[key] -= n; counts[key] == 0 {
		delete(counts, key)
	}
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
	from := s.origin.Value()
	w.releaseLocked(from.claim())
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
