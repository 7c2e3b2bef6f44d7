package clusterrelay

import (
	"context"
	"net/http"
	"slices"
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
	encoding listwatch.Encoding // nil for JSON
	*relay.Relay
	close   func()
	watches int           // the number of watches of the relay itself
	settled chan struct{} // closed when the cache has a state, or cannot get one

	once     sync.Once
	refusal  error        // immutable after settled is closed
	lastRead atomic.Int64 // Unix time in nanoseconds
	// refusedSince is the time of the first of the refusals in a row; guarded by caches.mu.
	refusedSince time.Time

	writes ownWrites // the writes that the proxy has passed on
	// warnings has the headers Warning of the newest response of the API server to the relay.
	warnings atomic.Pointer[[]string]
}

// responded records the warnings in the headers of a response of the API server.
func (c *cache) responded(h http.Header) {
	warnings := slices.Clip(h.Values("Warning")) // responses may append to it
	c.warnings.Store(&warnings)
}

// warn adds the warnings of the API server, such as that a resource is deprecated, to h.
func (c *cache) warn(h http.Header) {
	if warnings := c.warnings.Load(); warnings != nil && len(*warnings) > 0 {
		h["Warning"] = *warnings
	}
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

// await waits until the cache is settled, and returns the refusal. It returns nil after
// loadTimeout; a read of the relay then reports the progress of the cache.
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
	return c.Health().Watchers <= c.watches && time.Since(time.Unix(0, c.lastRead.Load())) >= idle
}

// Describe implements [listwatch.Describer]. Unlike the relay, the cache knows the kind before its
// first state: a list in Protobuf needs it.
func (c *cache) Describe() listwatch.Description {
	d := c.Relay.Describe()
	d.APIVersion, d.Kind = c.resource.APIVersion(), c.resource.Kind
	return d
}

// List implements [listwatch.Source]. A list of any state includes the writes that were passed on
// before it.
func (c *cache) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	counted := c.writes.counted.Load()
	q = c.writes.including(q)
	q.Continue = forCache(q.Continue)
	page, err := c.Relay.List(ctx, q)
	page.Continue = forServer(page.Continue, q.Namespace)
	if expired := listwatch.AsError(err); expired != nil && expired.Continue != "" {
		again := *expired
		again.Continue = forServer(expired.Continue, q.Namespace)
		err = &again
	}
	if err == nil && q.Start == listwatch.StartNewest && q.Continue == "" {
		c.writes.show(counted, page.Version)
	}
	return page, err
}

// Watch implements [listwatch.Source], like List.
func (c *cache) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return c.Relay.Watch(ctx, c.writes.including(q))
}

// keepsToken reports whether the cache must continue the list of token, because it has the version
// of the list, or because the API server cannot read the token.
func (c *cache) keepsToken(token string) bool {
	t, ok := parseContinueToken(token)
	return !ok || t.Version < 0 || listwatch.Version(t.Version) >= c.Stats().Oldest
}

// replaced records that the relay has received a whole state. If the relay doubted its previous
// state, the versions of the upstream may have gone back, so the versions of earlier writes have no
// meaning.
func (c *cache) replaced(why string) {
	if why == "doubted" {
		c.writes.doubt()
	}
	c.settle(nil)
}
