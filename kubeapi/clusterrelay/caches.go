package clusterrelay

import (
	"log/slog"
	"maps"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/relay"
)

// caches are the caches of a cluster.
type caches struct {
	// Immutable after construction.
	include, exclude []string
	open             func(Opening) (*relay.Relay, func())
	idle             time.Duration
	memory           int64 // no limit if zero or negative
	log              *slog.Logger
	audit            *audit // nil if nothing is counted

	mu sync.Mutex
	// Guarded by mu.
	resources map[resourceID]kubeapi.Resource // the resources that may be cached
	// missing holds the IDs in resources that the last discovery did not find.
	missing map[resourceID]bool
	running map[cacheID]*cache
	refused map[cacheID]time.Time // the time until which no cache with this ID is started
	// lacking holds the encodings that the API server does not have, with the time of its response.
	lacking map[cacheID]time.Time
	closed  bool // no cache may be started
}

const (
	// refusalTime is the time for which a resource is not cached after the API server has refused
	// it.
	refusalTime = time.Minute
	// refusalGrace is the time for which a cache outlives refusals. An API server that has just
	// started may refuse what it does not know yet.
	refusalGrace = 30 * time.Second
	// probeWait is the time that watches with many initial events wait for a probe. A list of all
	// objects costs an API server much more, and the readers of these watches, informers, rarely
	// mind two seconds. A kube-apiserver sends the bookmark of a probe after one to 2.3 seconds.
	probeWait = 3 * time.Second
	// lackingTime is the time after which the relay requests an encoding again that the API server
	// did not have. The API server may have been upgraded meanwhile.
	lackingTime = time.Hour
	// oversizeTime is the time for which a resource is not cached after it did not fit into the
	// memory.
	oversizeTime = 10 * time.Minute
)

// sensitive are the resources that are cached only if a pattern names them: Secrets, because they
// would be in the memory of the relay, and Leases, because they change all the time and few clients
// read them.
var sensitive = []string{"secrets", "leases.coordination.k8s.io"}

// permits reports whether the patterns permit a cache of the resource with a qualified name such as
// "deployments.apps".
func (c *caches) permits(name string) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	switch {
	case slices.ContainsFunc(c.exclude, matches):
		return false
	case slices.Contains(c.include, name):
		return true
	case slices.Contains(sensitive, name):
		return false
	}
	return len(c.include) == 0 || slices.ContainsFunc(c.include, matches)
}

// update replaces the known resources, and drops the caches of removed resources. A resource counts
// as removed if two discoveries in a row do not find it: an API server that has just started does
// not know its custom resources yet.
func (c *caches) update(found map[resourceID]kubeapi.Resource) {
	maps.DeleteFunc(found, func(_ resourceID, r kubeapi.Resource) bool { return !c.permits(r.QualifiedName()) })
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := make(map[resourceID]bool)
	for id, r := range c.resources {
		if _, ok := found[id]; !ok && !c.missing[id] {
			found[id], missing[id] = r, true
		}
	}
	c.resources, c.missing = found, missing
	// The API server is up, so the next reader of a forgotten encoding does not wait in vain.
	maps.DeleteFunc(c.lacking, func(id cacheID, since time.Time) bool {
		return found[id.resourceID].Plural == "" || time.Since(since) >= lackingTime
	})
	for id, k := range c.running {
		if r, ok := found[id.resourceID]; !ok || r.Kind != k.resource.Kind || r.Namespaced != k.resource.Namespaced {
			c.drop(id, k, "the resource has been removed")
		}
	}
}

// choose sets the resource and the form of q, the request r. It returns false if no cache may
// answer q.
func (c *caches) choose(r *http.Request, q *call, metadata *table.Table) (ok bool) {
	id := resourceID{q.Group, q.Version, q.Plural}
	c.mu.Lock()
	q.resource, ok = c.resources[id]
	c.mu.Unlock()
	// c.mu is not held meanwhile, because the Accept header may be long.
	offers := func(e listwatch.Encoding) bool { return !c.excludes(cacheID{id, e}) }
	if !ok || !q.selects(q.resource) || !q.choose(r, metadata, offers) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.refused[q.id()]) {
		return false
	}
	if k := c.running[q.id()]; q.verb == "get" && (k == nil || !k.isReady()) {
		return false // one object is not worth a cache
	}
	if q.resource.Namespaced {
		return q.Namespace != "" || q.Name == ""
	}
	return q.Namespace == ""
}

// excludes reports whether readers of a resource get another encoding than that of id: the API
// server lacks it, or it is refused now and a cache in another encoding runs.
func (c *caches) excludes(id cacheID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, isLacking := c.lacking[id]
	return isLacking || time.Now().Before(c.refused[id]) && c.hasOther(id)
}

// hasOther reports whether the resource of id has a cache in another encoding. c.mu must be held.
func (c *caches) hasOther(id cacheID) bool {
	for other := range c.running {
		if other.resourceID == id.resourceID && other != id {
			return true
		}
	}
	return false
}

// isReady reports whether the cache with the given ID has a state.
func (c *caches) isReady(id cacheID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.running[id]
	return k != nil && k.isReady()
}

// start returns the cache with the given ID, and starts it if there is none. r is its resource.
// After close, it returns nil.
func (c *caches) start(id cacheID, r kubeapi.Resource) *cache {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	k := c.running[id]
	if k == nil {
		k = &cache{resource: r, encoding: id.encoding, settled: make(chan struct{})}
		k.Relay, k.close = c.open(Opening{
			Resource: r, Encoding: encodingName(id.encoding), Framings: framingsOf(id.encoding),
			ProbeWait: probeWait,
			Client:    &client.Trace{Responded: k.responded},
			Relay: &relay.Trace{
				Replaced:     func(_ listwatch.Version, _ int, why string) { k.replaced(why) },
				UpstreamLost: func(err error, _ time.Duration, _ bool) { c.lost(id, k, err) },
			},
		})
		c.running[id] = k
		if c.audit != nil {
			k.watches = 1
			go c.audit.follow(k) // ends when k is closed
		}
	}
	k.lastRead.Store(time.Now().UnixNano())
	return k
}

// isRefusal reports whether the API server will not let the relay watch a resource: the relay has
// no right to it, the resource does not exist, or it cannot be watched.
func isRefusal(err error) bool {
	code := listwatch.CodeOf(err)
	return code == listwatch.Forbidden || code == listwatch.NotFound || code == listwatch.Unsupported
}

// lost records that the watch of k at the API server has ended with err. It drops k if the API
// server refuses the watch, and has refused it for refusalGrace if k has a state.
func (c *caches) lost(id cacheID, k *cache, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !isRefusal(err):
		k.refusedSince = time.Time{}
		return
	case k.refusedSince.IsZero():
		k.refusedSince = time.Now()
	}
	if k.isReady() && time.Since(k.refusedSince) < refusalGrace {
		return
	}
	k.settle(err)
	if listwatch.AsError(err).Status == http.StatusNotAcceptable {
		c.lacking[id] = time.Now() // custom resources have no Protobuf
	}
	if c.running[id] == k {
		c.refused[id] = time.Now().Add(refusalTime)
		c.drop(id, k, err.Error())
	}
}

// hasRoom reports whether a cache of r, whose objects have the given size, fits into the memory. If
// not, no cache with this ID is started for oversizeTime.
func (c *caches) hasRoom(id cacheID, r kubeapi.Resource, size int64) bool {
	used := c.Stats()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory <= 0 || c.running[id] != nil || memoryOf(used)+size <= c.memory {
		return true
	}
	c.log.Warn("a cache does not fit into the memory, so reads get another encoding or pass through",
		"resource", r.QualifiedName(), "encoding", encodingName(id.encoding), "bytes", size,
		"used", memoryOf(used), "limit", c.memory)
	c.refused[id] = time.Now().Add(oversizeTime)
	return false
}

// dropLargest drops the largest cache if all of them exceed the memory.
func (c *caches) dropLargest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	used, largest, size := int64(0), cacheID{}, int64(-1)
	for id, k := range c.running {
		n := memoryOf(k.Stats())
		if used += n; n > size {
			largest, size = id, n
		}
	}
	if c.memory > 0 && used > c.memory {
		c.refused[largest] = time.Now().Add(oversizeTime)
		c.drop(largest, c.running[largest], "the caches exceed the memory")
	}
}

// memoryOf returns the memory of a cache.
func memoryOf(s listwatch.Stats) int64 { return max(s.ObjectMemory, s.ObjectBytes) + s.HistoryBytes }

// isRunning reports whether there is a cache with the given ID.
func (c *caches) isRunning(id cacheID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[id] != nil
}

// drop ends the watches of k cleanly, so that its clients resume, through another cache or at the
// API server. c.mu must be held.
func (c *caches) drop(id cacheID, k *cache, why string) {
	delete(c.running, id)
	k.settle(errDropped()) // for those who still wait
	c.log.Info("dropped a cache", "resource", k.resource.QualifiedName(), "version", id.version,
		"encoding", encodingName(id.encoding), "why", why)
	go k.close() // ends when the relay has closed its connections; its goroutines may call refuse
}

// dropQuiet drops the caches that no client has read for the idle time.
func (c *caches) dropQuiet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, k := range c.running {
		if k.isQuiet(c.idle) {
			c.drop(id, k, "nobody reads it")
		}
	}
}

// wrote records a write in all caches of resources with the given plural, because a resource may be
// served in several groups and versions. version is the version in the response, or zero.
func (c *caches) wrote(plural string, version listwatch.Version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, k := range c.running {
		if id.plural == plural {
			k.writes.add(version)
		}
	}
}

// all returns the caches, in no particular order.
func (c *caches) all() []*cache {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.running))
}

// Stats returns the sums of the sizes of all caches.
func (c *caches) Stats() (sum listwatch.Stats) {
	for _, k := range c.all() {
		s := k.Stats()
		sum.Objects += s.Objects
		sum.Watchers += s.Watchers
		sum.ObjectBytes += s.ObjectBytes
		sum.ObjectMemory += max(s.ObjectMemory, s.ObjectBytes)
		sum.HistoryBytes += s.HistoryBytes
	}
	return sum
}

// close ends all caches. Requests that are still being answered start no others.
func (c *caches) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for _, k := range c.all() {
		k.settle(errDropped())
		k.close()
	}
}
