package relay

import (
	"context"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// An epochCache holds the state and history of one epoch of the upstream.
type epochCache struct {
	*watchcache.Cache // startEpoch sets the first state

	// Immutable after construction.
	name string // the epoch in the description
	// ambiguous is the newest version of the previous epochCache if that has the same name. A
	// reader at this version or an older one may have the state of either epochCache.
	ambiguous listwatch.Version
	// ctx ends when another epoch replaces this one. It is a field because it outlives every
	// call: when the epoch ends, all reads and probes of the epoch end.
	ctx    context.Context
	cancel context.CancelFunc
}

// newEpochCache returns an epochCache of r without a state.
func newEpochCache(r *Relay, d listwatch.Description) *epochCache {
	ep := &epochCache{name: d.Epoch}
	ep.ctx, ep.cancel = context.WithCancel(context.Background())
	ep.Cache = watchcache.New(d, watchcache.Options{
		History:     r.options.History,
		Newest:      func(ctx context.Context) (listwatch.Version, error) { return r.newest(ctx, ep) },
		Direct:      func(ctx context.Context, q listwatch.Query) (listwatch.Page, error) { return r.direct(ctx, ep, q) },
		InitialWait: r.initialWait,
		Verbatim:    true,
	})
	return ep
}

// close interrupts reads, and ends all watches with err after they have read the remaining events.
func (e *epochCache) close(err error) {
	e.cancel() // first, so that an interrupted read finds that the epoch is over
	e.Fail(err)
}

func (e *epochCache) isOver() bool { return e.ctx.Err() != nil }

// epochs holds the epochCache that readers use and the epochCache that receives events. They
// differ while the relay catches up with an upstream whose versions have started over. It is safe
// for concurrent use.
type epochs struct {
	mu sync.Mutex
	// Guarded by mu.
	next    *epochCache // receives the events of the upstream; nil before the first state
	served  *epochCache // nil before the first state
	changed chan struct{}
	closed  bool
}

// get returns the epochCache to read from, or nil if there is none. changed is closed when the
// result changes.
func (e *epochs) get() (ep *epochCache, changed <-chan struct{}, closed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.served, e.changed, e.closed
}

// filling returns the epochCache that receives the events of the upstream, or nil before the first
// state.
func (e *epochs) filling() *epochCache {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.next
}

// fill makes ep receive the events of the upstream. Readers do not use it yet.
func (e *epochs) fill(ep *epochCache) {
	e.mu.Lock()
	e.next = ep
	closed := e.closed
	e.mu.Unlock()
	if closed {
		ep.close(errShutdown)
	}
}

// serve makes readers use ep, and ends the watches of the previous epoch with err. It returns
// false and does nothing if ep is served already, or is no longer the epoch that is filled.
func (e *epochs) serve(ep *epochCache, err error) bool {
	e.mu.Lock()
	previous := e.served
	if e.closed || e.next != ep || previous == ep {
		e.mu.Unlock()
		return false
	}
	e.served = ep
	close(e.changed)
	e.changed = make(chan struct{})
	e.mu.Unlock()
	if previous != nil {
		previous.close(err)
	}
	return true
}

func (e *epochs) close() {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.changed)
	}
	served, next := e.served, e.next
	e.mu.Unlock()
	for _, ep := range []*epochCache{served, next} {
		if ep != nil {
			ep.close(errShutdown)
		}
	}
}
