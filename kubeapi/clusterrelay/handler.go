package clusterrelay

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/watchserver"
)

// A Handler serves the API of an API server. Use [New] to create one, and call Run. All methods are
// safe for concurrent use.
type Handler struct {
	// Immutable after construction.
	cacheServer
	caches       *caches
	identify     watchserver.Authenticator // of Options.Certificates
	recheckEvery time.Duration
	sizes        memo[cacheID, int64]
	entrance     http.Handler // admits all requests
	cached       http.Handler // serves the requests that a cache can answer

	tried chan struct{} // closed after the first attempt to find the resources
	ready atomic.Bool   // the resources have been found
}

// New returns a Handler. It does not connect to the API server yet. A malformed pattern is an
// error.
func New(o Options) (*Handler, error) {
	metadata, err := table.New(nil)
	if err := errors.Join(err, CheckPatterns(o.Include), CheckPatterns(o.Exclude)); err != nil {
		return nil, err
	}
	if o.Open == nil {
		o.Open = o.openRelay
	}
	if o.Server == nil {
		o.Server = new(watchserver.Server)
	}
	o.Server.Framings = cmp.Or(o.Server.Framings, streams)
	o.Log = cmp.Or(o.Log, slog.Default())
	h := &Handler{
		cacheServer:  cacheServer{server: o.Server, reviewer: &reviewer{caller: newCaller(&o)}, metadata: metadata},
		identify:     o.Certificates,
		recheckEvery: cmp.Or(o.Recheck, DefaultRecheck),
		tried:        make(chan struct{}),
		caches: &caches{
			include: o.Include, exclude: o.Exclude, open: o.Open, idle: cmp.Or(o.Idle, DefaultIdle), memory: o.Memory,
			log: o.Log, running: make(map[cacheID]*cache), refused: make(map[cacheID]time.Time),
			lacking: make(map[cacheID]time.Time),
		},
	}
	if o.Audit {
		h.caches.audit = newAudit()
		o.Server.Trace = watchserver.JoinTraces(o.Server.Trace, h.caches.audit.trace())
	}
	h.proxy = newProxy(o.URL, newCarrier(&o), h.answered, slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug))
	h.entrance, h.cached = o.Server.Gate(apihttp.HandlerFunc(h.decide)), o.Server.Gate(apihttp.HandlerFunc(h.serve))
	o.Server.Limits.Stored = append(o.Server.Limits.Stored, h.caches)
	return h, nil
}

// answered is called before the response to a request that was passed on is sent.
func (h *Handler) answered(c *call, response *http.Response) {
	if c.writes() {
		h.caches.wrote(c.Plural, versionOf(response))
	}
	if h.caches.audit != nil && response != nil && c.verb != "" {
		h.caches.audit.passed(c, response)
	}
}

// Audit returns a handler that shows which client reads what, and what changes in the caches, as a
// page, as text or, with the parameter format=json, as JSON. It returns nil without Options.Audit.
func (h *Handler) Audit() http.HandlerFunc {
	if h.caches.audit == nil {
		return nil
	}
	return h.caches.audit.serveReport
}

// ServeHTTP serves r from a cache, or passes r on to the API server.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.entrance.ServeHTTP(w, apihttp.ForAnotherServer(r))
}

// decide serves r from a cache, or passes r on to the API server.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
	c := newCall(r, a)
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	var err error
	if c.sender, err = senderOf(r, h.identify); err != nil {
		return err
	}
	isCached, err := h.admit(r, c)
	switch {
	case err != nil:
		return err
	case isCached:
		r = r.WithContext(watchserver.WithUser(r.Context(), c.user.forServer()))
		r.Header = r.Header.Clone()
		r.Header.Set("Accept", c.accept.String())
		h.cached.ServeHTTP(w, r)
		return nil
	case c.continuesDropped(r.Method):
		return errDropped()
	}
	return h.proxy.pass(w, r)
}

// admit sets the user and the cache of c, the request r. It returns false if c must be passed on:
// if no cache can answer it, or if the API server does not say that the client may make it.
func (h *Handler) admit(r *http.Request, c *call) (bool, error) {
	if !c.parseRead(r) || !c.sender.isKnown() {
		return false, nil
	}
	h.awaitDiscovery(r.Context())
	isCached, err := h.tryCache(r, c)
	if !isCached && err == nil && h.caches.excludes(c.id()) {
		// The attempt has shown that there is no cache in this encoding. Try the client's next one.
		isCached, err = h.tryCache(r, c)
	}
	return isCached, err
}

// tryCache is admit for the form that c chooses now.
func (h *Handler) tryCache(r *http.Request, c *call) (bool, error) {
	c.cache = nil
	if !h.caches.choose(r, c, h.metadata) {
		return false, nil
	}
	if c.isPlain && c.sender.certified == nil && !h.caches.isReady(c.id()) {
		// The API server responds before the cache has a state. The cache is for later reads.
		// The goroutine ends with the reviews, which have a timeout. If they fail, the next read
		// requests them again.
		ctx, later := context.WithoutCancel(r.Context()), *c
		go func() { _ = h.start(ctx, &later) }()
		return false, nil
	}
	if err := h.start(r.Context(), c); err != nil || c.cache == nil {
		return false, err
	}
	return c.cache.await(r.Context()) == nil && c.cache.keepsToken(c.token), nil
}

// start sets the user and the cache of c, and starts the cache if there is none. The cache remains
// nil if the client may not make the request, if the memory has no room, or after Run.
func (h *Handler) start(ctx context.Context, c *call) error {
	denial, err := h.reviewer.check(ctx, c)
	if err != nil {
		return reviewFailed(err)
	}
	if denial == nil && h.fits(ctx, c) {
		c.cache = h.caches.start(c.id(), c.resource)
	}
	return nil
}

// fits reports whether the memory has room for the cache of c. It returns true if the cache runs
// already. It also returns true if the size is not known, because the cache then reports the
// reason.
func (h *Handler) fits(ctx context.Context, c *call) bool {
	if h.caches.memory <= 0 || h.caches.isRunning(c.id()) {
		return true
	}
	size, err := h.sizes.get(ctx, c.id(), func(ctx context.Context) (int64, error) {
		return h.reviewer.size(ctx, c.resource, c.encoding)
	})
	return err != nil || h.caches.hasRoom(c.id(), c.resource, size)
}

// awaitDiscovery waits for the first discovery, so that the clients of a relay that has just
// started do not open their watches at the API server.
func (h *Handler) awaitDiscovery(ctx context.Context) {
	select {
	case <-h.tried:
	case <-time.After(requestTimeout):
	case <-ctx.Done():
	}
}

// Ready returns an error until the relay knows the resources of the API server.
func (h *Handler) Ready() error {
	if !h.ready.Load() {
		return unreachable(nil)
	}
	return nil
}

// The intervals of the background work of a Handler.
const (
	discoveryInterval = 10 * time.Second
	retryInterval     = time.Second
)

// Run finds the resources of the API server, drops quiet caches, and reviews the rights of the open
// watches again, until ctx ends. It then closes the caches.
func (h *Handler) Run(ctx context.Context) {
	defer h.proxy.carrier.CloseIdleConnections()
	defer h.reviewer.client.CloseIdleConnections()
	defer h.caches.close()
	go h.recheck(ctx)     // ends with ctx
	go h.limitMemory(ctx) // ends with ctx
	tried := sync.OnceFunc(func() { close(h.tried) })
	failed := false
	for {
		wait := discoveryInterval
		found, err := h.reviewer.discover(ctx)
		switch {
		case err == nil:
			h.caches.update(found)
			h.ready.Store(true)
		case ctx.Err() == nil:
			wait = retryInterval
			if !failed {
				h.caches.log.Warn("cannot find the resources of the API server", "error", err)
			}
		}
		failed = err != nil
		tried()
		h.caches.dropQuiet()
		if !sleep(ctx, wait) {
			return
		}
	}
}

// recheck ends the watches whose clients have lost their rights, at each interval recheckEvery.
func (h *Handler) recheck(ctx context.Context) {
	for sleep(ctx, h.recheckEvery) {
		h.server.Recheck()
	}
}

// limitMemory drops caches that have grown too large, at each retryInterval.
func (h *Handler) limitMemory(ctx context.Context) {
	for sleep(ctx, retryInterval) {
		h.caches.dropLargest()
	}
}

// sleep waits, and returns false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
