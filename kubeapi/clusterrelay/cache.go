package clusterrelay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/relay"
)

// A cache is a relay of one resource. It is a Source that also shows the writes that the proxy has
// passed on.
type cache struct {
	// Immutable after construction.
	resource kubeapi.Resource
	*relay.Relay
	close   func()
	own     int           // the number of watches of the relay itself
	settled chan struct{} // closed when the cache has a state, or cannot get one

	once     sync.Once
	refusal  error        // immutable after settled is closed
	lastRead atomic.Int64 // Unix time in nanoseconds
	// refusedSince is the time of the first of the refusals in a row; guarded by caches.mu.
	refusedSince time.Time

	// newest is the newest version that a write has returned. written is the number of the writes
	// that have returned none, and shown the number of those that every state of the cache
	// includes.
	newest, written, shown atomic.Uint64
}

// settle records that the cache has a state, or that the API server refuses it for the given
// reason. Only the first call has an effect.
func (c *cache) settle(refusal error) {
	c.once.Do(func() {
		c.refusal = refusal
		close(c.settled)
	})
}

// isReady reports whether the cache has a state.
func (c *cache) isReady() bool {
	select {
	case <-c.settled:
		return c.refusal == nil
	default:
		return false
	}
}

// await waits until the cache is settled, and returns the refusal. It gives up after the time that
// a large collection takes; the relay then reports how far it is.
func (c *cache) await(ctx context.Context) error {
	select {
	case <-c.settled:
		return c.refusal
	case <-time.After(loadTimeout):
	case <-ctx.Done():
	}
	return nil
}

// loadTimeout is the time that readers wait for the first state of a cache.
const loadTimeout = 20 * time.Second

// isQuiet reports whether there is no open watch and no request for the given time.
func (c *cache) isQuiet(idle time.Duration) bool {
	return c.Health().Watchers <= c.own && time.Since(time.Unix(0, c.lastRead.Load())) >= idle
}

// List implements [listwatch.Source]. A list of any state includes the writes that were passed on
// before it.
func (c *cache) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	written := c.showWrites(&q)
	q.Continue = forCache(q.Continue)
	page, err := c.Relay.List(ctx, q)
	page.Continue = forServer(page.Continue, q.Namespace)
	if expired := listwatch.AsError(err); expired != nil && expired.Continue != "" {
		again := *expired
		again.Continue = forServer(expired.Continue, q.Namespace)
		err = &again
	}
	if err == nil && q.Start == listwatch.StartNewest && q.Continue == "" {
		c.show(written)
	}
	return page, err
}

// Watch implements [listwatch.Source], like List.
func (c *cache) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	c.showWrites(&q)
	return c.Relay.Watch(ctx, q)
}

// keepsToken reports whether the cache can continue the list of token, or the API server cannot.
func (c *cache) keepsToken(token string) bool {
	t, ok := parseContinueToken(token)
	return !ok || t.Version < 0 || listwatch.Version(t.Version) >= c.Stats().Oldest
}

// wrote records a write that was passed on. version is the version in its response, or zero if
// there is none.
func (c *cache) wrote(version listwatch.Version) {
	if version == 0 {
		c.written.Add(1)
		return
	}
	raise(&c.newest, uint64(version))
}

// replaced records that the relay has received a whole state. If it doubts the one that it had, the
// versions of the upstream may have gone back, so that the versions of writes mean nothing.
func (c *cache) replaced(why string) {
	if why == "doubted" {
		c.written.Add(1)
		c.newest.Store(0)
	}
	c.settle(nil)
}

// showWrites ensures that q shows all writes that the relay has passed on. If q permits any state,
// and the cache may lack such a write, q becomes a query of a state that has the write. This is the
// state at the version of the write, or the newest state of the upstream if that version is not
// known, as after a deletion. showWrites returns the number of writes passed on so far.
func (c *cache) showWrites(q *listwatch.Query) uint64 {
	written, newest := c.written.Load(), listwatch.Version(c.newest.Load())
	switch {
	case q.Start != listwatch.StartAny:
	case c.shown.Load() < written:
		q.Start = listwatch.StartNewest
	case newest != 0:
		if q.SendsInitialEvents() {
			q.InitialEvents = listwatch.InitialEventsYes
		}
		q.Start, q.Version = listwatch.StartAt, newest
	}
	return written
}

// show records that the cache has reached a version that covers the given number of writes.
func (c *cache) show(written uint64) { raise(&c.shown, written) }

// raise sets a to v unless it is greater.
func raise(a *atomic.Uint64, v uint64) {
	for {
		old := a.Load()
		if old >= v || a.CompareAndSwap(old, v) {
			return
		}
	}
}
