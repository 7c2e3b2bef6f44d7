package clusterrelay

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// Options configure a [Handler]. All fields except Certificates and Audit are required.
type Options struct {
	// URL is the URL of the API server.
	URL *url.URL
	// Passed connects to the API server for requests of clients. It must have no credentials: the
	// API server would take a client certificate for that of the client.
	Passed transport.Network
	// Own sends the relay's own requests with the relay's credentials.
	Own *http.Client
	// Server serves lists and watches from caches. The Handler adds the caches to its limits. The
	// Server must have no Authenticator, because the API server identifies the users.
	Server *watchserver.Server
	// Caches say what is cached.
	Caches CacheOptions
	// Recheck is the interval at which the rights to open watches are reviewed again.
	Recheck time.Duration
	// Certificates say how clients with certificates are served.
	Certificates Certificates
	// Audit makes the Handler count what clients read, and what changes; see [Handler.Audit].
	Audit bool
	// Log receives what happens to the caches.
	Log *slog.Logger
}

// A Handler serves the API of an API server. Use [New] to create one, and call Run.
type Handler struct {
	// Immutable after construction.
	cacheServer
	caches       *caches
	certificates Certificates
	recheckEvery time.Duration
	sizes        memo[resourceID, int64]
	carrier      *carrier
	cached       http.Handler // serves the requests that admit has admitted

	tried chan struct{} // closed after the first attempt to find the resources
	ready atomic.Bool   // the resources have been found
}

// New returns a Handler.
func New(o Options) (*Handler, error) {
	metadata, err := table.New(nil)
	if err != nil {
		return nil, err
	}
	h := &Handler{
		cacheServer: cacheServer{
			server: o.Server, reviewer: &reviewer{caller: &caller{o.URL, o.Own}}, metadata: metadata,
		},
		carrier: newCarrier(o.Passed, o.Certificates.FrontProxy), certificates: o.Certificates,
		recheckEvery: o.Recheck,
		tried:        make(chan struct{}),
		caches: &caches{
			CacheOptions: o.Caches, log: o.Log,
			running: make(map[resourceID]*cache), refused: make(map[resourceID]time.Time),
		},
	}
	if o.Audit {
		h.caches.audit = newAudit()
		o.Server.Trace = watchserver.JoinTraces(o.Server.Trace, h.caches.audit.trace())
	}
	h.proxy = newProxy(o.URL, h.carrier, h.answered, slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug))
	h.cached = o.Server.Gate(apihttp.HandlerFunc(h.serve))
	o.Server.Limits.Stored = append(o.Server.Limits.Stored, h.caches)
	return h, nil
}

// answered is called before the response to a request that was passed on is sent.
func (h *Handler) answered(p passed, response *http.Response) {
	if p.writes {
		h.caches.wrote(p.Plural, versionOf(response))
	}
	if h.caches.audit != nil && response != nil {
		h.caches.audit.passed(p, response)
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
	identified, err := h.certificates.withCertificate(r)
	if err != nil {
		watchserver.WriteError(w, r, err)
		return
	}
	r = identified
	read, err := h.admit(r)
	switch {
	case err != nil:
		watchserver.WriteError(w, r, err)
	case read != nil:
		ctx := watchserver.WithUser(r.Context(), read.user.forServer())
		h.cached.ServeHTTP(w, r.WithContext(context.WithValue(ctx, readKey{}, read)))
	case continuesDropped(r):
		watchserver.WriteError(w, r, errDropped())
	default:
		h.proxy.ServeHTTP(w, r)
	}
}

// admit returns the read that r requests, if a cache can answer it and the API server says that the
// client may make it. If the result is nil, the API server must answer r itself.
func (h *Handler) admit(r *http.Request) (*read, error) {
	q, ok := parse(r)
	if !ok {
		return nil, nil
	}
	from := sender{certified: certifiedIn(r.Context())}
	if from.certified == nil {
		var err error
		if from.token, err = watchserver.BearerToken(r); err != nil || from.token == "" {
			return nil, nil
		}
	}
	h.awaitDiscovery(r.Context())
	resource, ok := h.caches.find(&q)
	if !ok {
		return nil, nil
	}
	read := &read{request: q, sender: from}
	switch denial, err := h.reviewer.check(r.Context(), read); {
	case err != nil:
		return nil, reviewFailed(err)
	case denial != nil:
		return nil, nil // the API server refuses r in its own words
	}
	if !h.fits(r.Context(), resource) {
		return nil, nil
	}
	read.cache = h.caches.start(resource)
	if read.isPlain && from.certified == nil && !read.cache.isReady() {
		return nil, nil // faster than the state of the cache
	}
	if read.cache.await(r.Context()) != nil || !read.cache.keepsToken(q.token) {
		return nil, nil
	}
	return read, nil
}

// fits reports whether the memory has room for a cache of r, if it has none yet. If the size is not
// known, it returns true: the cache then says what is wrong.
func (h *Handler) fits(ctx context.Context, r kubeapi.Resource) bool {
	if h.caches.Memory <= 0 || h.caches.isRunning(r) {
		return true
	}
	size, err := h.sizes.get(ctx, idOf(r), func(ctx context.Context) (int64, error) { return h.reviewer.size(ctx, r) })
	return err != nil || h.caches.hasRoom(r, size)
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
