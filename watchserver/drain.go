package watchserver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// A registry knows the open watches of a Server.
type registry struct {
	mu sync.Mutex
	// Guarded by mu.
	streams  map[*stream]struct{}
	clients  map[string]int // how many watches each has open or is opening
	count    int            // the sum of clients
	lastID   uint64
	draining bool
	empty    chan struct{} // closed when draining and the last watch has ended
}

// admit counts one more watch of client, unless that is too many or the server drains.
func (g *registry) admit(client string, l Limits) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.draining:
		return draining()
	case l.Watches > 0 && g.count >= l.Watches:
		return tooManyWatches("the server", l.Watches)
	case l.WatchesPerClient > 0 && g.clients[client] >= l.WatchesPerClient:
		return tooManyWatches("this client", l.WatchesPerClient)
	}
	if g.clients == nil {
		g.clients = make(map[string]int)
		g.streams = make(map[*stream]struct{})
	}
	g.clients[client]++
	g.count++
	return nil
}

// dismiss takes an admission back.
func (g *registry) dismiss(client string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free(client)
}

// free gives the place of a watch back. g.mu is held.
func (g *registry) free(client string) {
	if g.clients[client]--; g.clients[client] == 0 {
		delete(g.clients, client)
	}
	if g.count--; g.count == 0 && g.draining {
		close(g.empty)
	}
}

// enter makes s known to the others, who may look at it from then on.
func (g *registry) enter(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lastID++
	s.about.ID = g.lastID
	g.streams[s] = struct{}{}
	if g.draining {
		// It was admitted just before: it ends as it begins.
		s.drain(time.Now())
	}
}

// leave forgets s and gives its place back, in one step: whoever sees that a watch has ended may open another one.
func (g *registry) leave(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.streams, s)
	g.free(s.about.Client)
}

func (g *registry) drains() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

func (g *registry) open() []*stream {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*stream, 0, len(g.streams))
	for s := range g.streams {
		all = append(all, s)
	}
	return all
}

// startDraining lets no further watch in and returns a channel that is closed when none is left.
func (g *registry) startDraining() (empty <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.draining {
		g.draining = true
		g.empty = make(chan struct{})
		if g.count == 0 {
			close(g.empty)
		}
	}
	return g.empty
}

// Drain ends every watch, on every transport, and lets no new one in: those are answered 503 with Retry-After. Each watch gets what is
// ready for it, a last bookmark where it allows bookmarks, and a clean end; Timing.DrainSpread says over which time the ends are
// spread, but never past the deadline of ctx. Drain returns nil when all have ended; when ctx ends first it cuts the rest off, gives
// them a second, and returns ctx.Err(). Lists are still answered: shut the http.Server down after Drain.
func (s *Server) Drain(ctx context.Context) error {
	empty := s.live.startDraining()
	now := time.Now()
	over := max(s.Timing.DrainSpread, 0)
	if deadline, ok := ctx.Deadline(); ok {
		// The last ones need a moment too.
		over = min(over, max(time.Until(deadline)*9/10, 0))
	}
	for _, st := range s.live.open() {
		st.drain(now.Add(spread(0, over)))
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
	}
	for _, st := range s.live.open() {
		st.out.Sender.Close(transport.Abort) // makes a write that waits fail, and so the stream end
	}
	select {
	case <-empty:
	case <-time.After(lastMoment): // a source that doesn't answer can't be cut off
	}
	return ctx.Err()
}

// lastMoment is how long Drain waits for watches that it has cut off.
const lastMoment = time.Second

// drain makes s end at t.
func (s *stream) drain(t time.Time) {
	s.drainAt.Store(&t)
	s.wake()
}

// Watches describes the open watches, oldest first.
func (s *Server) Watches() []Watch {
	streams := s.live.open()
	all := make([]Watch, len(streams))
	for i, st := range streams {
		all[i] = st.describe()
	}
	slices.SortFunc(all, func(a, b Watch) int { return a.Opened.Compare(b.Opened) })
	return all
}
