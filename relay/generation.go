package relay

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// A generation is what a relay knows of one epoch of the upstream.
type generation struct {
	// Immutable after construction.
	log         *history.Log
	head        *history.Revision
	description listwatch.Description
	ctx         context.Context // ends with the generation
	cancel      context.CancelFunc

	// torn is a version whose events came in pieces, some after others had been shown: nobody can go on from it. Zero: there is none.
	torn atomic.Uint64
}

func newGeneration(o Options, d listwatch.Description, v listwatch.Version) *generation {
	g := &generation{head: new(history.Revision), description: d}
	g.head.Advance(v)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.log = history.New(history.Options{
		MaxAge: o.HistoryAge, MaxBytes: o.HistoryBytes, FrameCacheBytes: o.FrameCacheBytes, Description: d, Revision: g.head,
	})
	return g
}

// reset gives g the state at v.
func (g *generation) reset(objects []*listwatch.Object, v listwatch.Version) {
	g.log.Reset(objects, v)
	g.head.Advance(v)
}

// end ends all watchers of g with err, once they have read what is there, and interrupts its lists.
func (g *generation) end(err error) {
	g.log.CloseWithError(err)
	g.cancel()
}

func (g *generation) isOver() bool { return g.ctx.Err() != nil }

// within returns ctx, cut off at the end of g.
func (g *generation) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// latest is the generation that readers get. Safe for concurrent use.
type latest struct {
	mu sync.Mutex
	// Guarded by mu.
	next    *generation // what the upstream is read into; it may not have come far enough to be shown
	shown   *generation // nil: there is none yet
	changed chan struct{}
	closed  bool
}

func (l *latest) init() { l.changed = make(chan struct{}) }

// get returns the generation to read from, or nil and a channel that is closed when that may have changed.
func (l *latest) get() (g *generation, changed <-chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown, l.changed, l.closed
}

// filled returns the generation that the upstream is read into; nil: there is none yet.
func (l *latest) filled() *generation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// begin makes g the one that is filled; it is not shown yet.
func (l *latest) begin(g *generation) {
	l.mu.Lock()
	l.next = g
	closed := l.closed
	l.mu.Unlock()
	if closed {
		g.end(errEnd)
	}
}

// show makes g the one that is read, if it is still the one that is filled, and ends the one before with err.
func (l *latest) show(g *generation, err error) (shown bool) {
	l.mu.Lock()
	old := l.shown
	if l.closed || l.next != g || old == g {
		l.mu.Unlock()
		return false
	}
	l.shown = g
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	if old != nil {
		old.end(err)
	}
	return true
}

func (l *latest) close() {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	shown, next := l.shown, l.next
	if !was {
		close(l.changed)
	}
	l.mu.Unlock()
	for _, g := range []*generation{shown, next} {
		if g != nil {
			g.end(errEnd)
		}
	}
}
