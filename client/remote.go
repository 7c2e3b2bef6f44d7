package client

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/eventqueue"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/transport"
)

// A Remote is the Source behind a URL, and the [listwatch.Store] if the server also writes. If the
// server does not know projections, the Remote reduces the objects itself. Its watches then also
// return events for changes that the projection hides.
//
// Only URL must be set. A Remote is safe for concurrent use. Its fields must not be changed once it
// is in use, and it must not be copied.
type Remote struct {
	// URL is the http or https URL of the collection. In a Kubernetes API it names all objects or
	// the objects of one namespace. Every request contains the query parameters of this URL, except
	// for the parameters that come from a Query, such as watch and limit. Selectors in the URL are
	// combined with the selectors of a Query. The parameter fields is used if a Query has no
	// Projection. Neither applies to single objects. The parameter timeoutSeconds limits how long
	// the server keeps a watch open.
	URL string
	// PlainPaths controls the paths of objects and namespaces. If it is false and the path of URL
	// ends like a collection of a Kubernetes API (/api/VERSION/PLURAL or
	// /apis/GROUP/VERSION/PLURAL), the path of an object is as in Kubernetes, such as
	// /api/v1/namespaces/NAMESPACE/pods/NAME. Lists and watches of one namespace then use the path
	// of the namespace, unless the server responds with 404. If PlainPaths is true, or for any
	// other URL, an object is at URL/NAME or URL/NAMESPACE/NAME, and lists and watches select the
	// namespace by a field.
	PlainPaths bool
	// HTTPClient sends lists and writes and, if Transports is nil, watches and the handshakes of
	// WebSocket. It can add a proxy, OAuth, tracing, a Unix socket or a dialer. If nil, clients
	// over Network are used, which detect a dead server by the pings of HTTP/2 and use no proxy.
	//
	// WebSocket needs a RoundTripper that supports upgrades, and is not used with other
	// RoundTrippers; see the HTTPClient of the client in package transport/websocket. The Timeout
	// of HTTPClient limits the whole duration of a list or a write. For a watch it only limits
	// the time until the response begins.
	HTTPClient *http.Client
	// Network connects to the server for lists and writes if HTTPClient is nil, and for watches if
	// Transports is nil, too.
	Network transport.Network
	// Transports are the transports for watches, best first. If set, they are used instead of
	// HTTPClient and Network, which then serve only lists and writes. If nil, an https URL uses
	// HTTP/2, then HTTP/1.1, then WebSocket, and an http URL uses HTTP/1.1, then WebSocket. If
	// HTTPClient is set, watches use the version of HTTP that it and the server agree on, then
	// WebSocket.
	//
	// HTTP/2 comes first because it lets all watches share connections, whose pings detect
	// a dead server. For http URLs it is not used, because without TLS a client cannot find
	// out whether a server supports it. HTTP/1.1 works with every server, so its failures
	// are failures of the request and not of the transport. WebSocket is for networks with
	// proxies that buffer long responses.
	Transports []transport.Client
	// Header returns headers for a request, such as Authorization. It may be nil. It is called
	// before each request. After a 401 it is called once more with refresh set to true, and must
	// then return other credentials. It must be safe for concurrent use. An error without a code
	// counts as Unavailable, and so does a call that takes longer than IdleTimeout. A RoundTripper
	// of HTTPClient may add credentials instead.
	Header func(ctx context.Context, refresh bool) (http.Header, error)
	// Framings are the framings for watches, best first. If nil, JSON is used. If they are
	// [framing.EncodedFramer]s, all of them must have the same encoding. Lists and single objects
	// are in that encoding, too, and so are the objects of Create and Replace. Otherwise these are
	// JSON.
	Framings []framing.Framer
	// Compress requests compressed watches and lists, which the server may decline. It is
	// meant for slow or expensive networks: it halves the size of an event of a few KiB, and
	// costs a few microseconds per event at each end.
	Compress bool
	// MaxObjectBytes limits the decompressed size of an event and of an object in a list. If it
	// is zero or negative, [framing.DefaultLimit] is used.
	MaxObjectBytes int
	// MaxListBytes limits the decompressed size of a page of a list. If zero,
	// [DefaultMaxListBytes] is used. A negative value means no limit.
	MaxListBytes int64
	// IdleTimeout is the silence after which a connection of a watch or a list is closed. If zero,
	// [DefaultIdleTimeout] is used. A negative value disables the timeout.
	IdleTimeout time.Duration
	// Backoff configures the delay before a watcher reconnects. Informers and relays that follow
	// the Remote use it if they have no Backoff of their own.
	Backoff listwatch.Backoff
	// Trace holds hooks that observe the watchers. It may be nil.
	Trace *Trace

	state remoteState
}

var (
	_ listwatch.Store     = (*Remote)(nil)
	_ listwatch.Describer = (*Remote)(nil)
)

// The defaults of [Remote].
const (
	// DefaultIdleTimeout is two and a half times one minute, the interval at which servers send
	// bookmarks.
	DefaultIdleTimeout = 150 * time.Second
	// DefaultMaxListBytes is 1 GiB.
	DefaultMaxListBytes = 1 << 30
)

// remoteState holds the clients that a Remote creates, and its knowledge about the server.
type remoteState struct {
	once sync.Once
	// http sends all requests except watches. It is set when once runs.
	http *http.Client
	// fallback is set when once runs.
	fallback  fallback
	watchList reflector.WatchListSupport
	// described is true if Kind and APIVersion in description are known.
	described atomic.Bool
	// lacksNamespaces is true if the server does not have the URLs of namespaces.
	lacksNamespaces atomic.Bool

	mu          sync.Mutex
	description listwatch.Description // guarded by mu
}

// init initializes state once.
func (r *Remote) init() {
	r.state.once.Do(func() {
		r.state.http = r.newHTTPClient()
		transports := r.Transports
		if transports == nil {
			transports = r.defaultTransports()
		}
		for _, t := range transports {
			r.state.fallback.candidates = append(r.state.fallback.candidates, &candidate{client: t})
		}
	})
}

// Close closes unused connections, including the connections of Transports and HTTPClient.
// Watchers stay open, and the Remote remains usable. The error is always nil.
func (r *Remote) Close() error {
	r.init()
	r.state.http.CloseIdleConnections()
	for _, candidate := range r.state.fallback.candidates {
		if c, ok := candidate.client.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
	return nil
}

// Watch sends the first request and returns its error, if any. ctx bounds only that request.
// The Watcher recovers from later failures; the package comment lists the errors that it
// returns.
//
// If the server refuses to send initial events (KEP-3157), the Remote lists the objects instead,
// and the watch begins at the version of the list. The reader sees no difference. For the next
// hour, every Watch of the Remote that needs the state begins with such a list. If such a list must
// be repeated, the watch after it opens when the reader has made room in the queue. A reader that
// takes longer than the history of the server then gets [listwatch.Expired].
//
// A Watch without initial events and with StartNewest or StartAny first lists one object and
// starts at the version of that list, because a watch without a version could not be
// resumed.
//
// If Start is StartAt and the epoch of the server has changed, the error is [listwatch.Expired]. A
// Query does not contain an epoch, so the Remote assumes that the version belongs to the newest
// epoch that the server has reported.
func (r *Remote) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := checkQuery("watch", q); err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	sink := &queueSink{Queue: eventqueue.New(q.Bookmarks)}
	stop := context.AfterFunc(ctx, cancel)
	f, err := r.follow(life, q, sink)
	if !stop() && err == nil {
		_ = f.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, transport.DialError(ctx, "watch", err)
	}
	sink.hasReader = true
	go func() { // ends after Close of the watcher, which does not wait for it
		err := f.Run(life)
		if life.Err() != nil || isNoContent(err) {
			err = io.EOF
		}
		sink.End(err)
		cancel()
	}()
	return &watcher{sink.Queue, cancel}, nil
}

// follow returns a Reflector that passes the events of q to sink, and opens its first watch.
func (r *Remote) follow(ctx context.Context, q listwatch.Query, sink *queueSink) (*reflector.Reflector, error) {
	source := r.Connect(0).(*connections)
	if !q.Bookmarks {
		q.Since = listwatch.State{}
	}
	f := &reflector.Reflector{
		Source: source, Policy: source.Policy(), Sink: sink, Query: q,
		PageSize: -1, Restart: sink.restart,
	}
	switch {
	case q.SendsInitialEvents():
	case q.Start == listwatch.StartAt:
		f.Resume = reflector.ResumePoint{Synced: true, Version: q.Version}
	default:
		// A watch without a start version could not be resumed before its first event, so list
		// one object to learn a version.
		page, err := source.List(ctx, listwatch.Query{
			Selection: listwatch.Selection{Namespace: q.Namespace, Name: q.Name}, Limit: 1,
		})
		if err != nil {
			return nil, err
		}
		f.Resume = reflector.ResumePoint{Synced: true, Confirmed: true, Version: page.Version}
	}
	return f, f.Open(ctx)
}

// Connect returns a Source whose watches are single connections, for a program that has its own
// loop to reconnect. The informers and relays of this module follow that Source instead of r, so
// that only one loop recovers from failures.
//
// Its List is the List of r. A watch is one response of the server: the Watcher ends when the
// response ends, with io.EOF if the end was clean, and the program resumes with another watch.
// The watch must begin with initial events or at a version. Watch fails with [listwatch.Expired]
// if the epoch of the server differs from the epoch of the previous list or watch, unless the
// watch begins with initial events. Call Connect once for each loop, because another loop would
// change the epoch of the previous list or watch.
//
// All calls of Next must have the same context: when the context of a call ends, the connection is
// closed, even between two calls.
//
// If timeout is positive, the server is asked to end each watch after that time, rounded up to
// seconds, and the watches are not reported to Trace. Otherwise each watch calls Trace.Opened. The
// program must call Trace.Lost itself.
func (r *Remote) Connect(timeout time.Duration) listwatch.Source {
	r.init()
	c := &connections{remote: r, trace: r.Trace, encoding: r.encoding(), epoch: r.Describe().Epoch}
	if timeout > 0 {
		c.trace, c.timeoutSeconds = nil, strconv.Itoa(int((timeout+time.Second-1)/time.Second))
	}
	return c
}

// Describe returns the properties that the responses of the server have revealed so far, and the
// encoding of Framings. Fields is always empty.
func (r *Remote) Describe() listwatch.Description {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	d := r.state.description
	d.Encoding = r.encoding()
	return d
}

// learnKind records the type of the objects.
func (r *Remote) learnKind(apiVersion, kind string) {
	if apiVersion == "" || kind == "" || r.state.described.Load() {
		return
	}
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	r.state.description.APIVersion, r.state.description.Kind = apiVersion, kind
	r.state.described.Store(true)
}

// learnFrom records the type of o, which may be the object of a bookmark and must be JSON.
func (r *Remote) learnFrom(o *listwatch.Object) {
	if r.state.described.Load() {
		return
	}
	apiVersion, errA := rawjson.String(rawjson.Lookup(o.Data, "apiVersion"))
	kind, errK := rawjson.String(rawjson.Lookup(o.Data, "kind"))
	if errA == nil && errK == nil {
		r.learnKind(apiVersion, kind)
	}
}

func (r *Remote) learnEpoch(epoch string) {
	if epoch == "" {
		return
	}
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	r.state.description.Epoch = epoch
}

// authorized calls try with the headers that r.Header returns. After a 401 it requests fresh
// headers and calls try once more. If refresh is true, the first headers are already fresh, and
// there is no second call.
func (r *Remote) authorized(ctx context.Context, refresh bool, try func(http.Header) error) error {
	for {
		var h http.Header
		if r.Header != nil {
			var err error
			if h, err = r.callHeader(ctx, refresh); err != nil {
				return headerError(ctx, err)
			}
		}
		err := try(h)
		if err == nil || r.Header == nil || refresh || listwatch.CodeOf(err) != listwatch.Unauthorized {
			return err
		}
		refresh = true
	}
}

// callHeader returns the result of r.Header, or an error if the call takes longer than the idle
// timeout. It does not rely on r.Header to observe its context, because the source of the tokens
// may be a program or a library that hangs.
func (r *Remote) callHeader(ctx context.Context, refresh bool) (http.Header, error) {
	if idle := r.idle(); idle > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, idle)
		defer cancel()
	}
	type result struct {
		header http.Header
		err    error
	}
	done := make(chan result, 1)
	go func() { // ends when Header returns
		h, err := r.Header(ctx, refresh)
		done <- result{h, err}
	}()
	select {
	case got := <-done:
		return got.header, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func headerError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := listwatch.CodeOf(err)
	if code == listwatch.Unknown {
		code = listwatch.Unavailable
	}
	return &listwatch.Error{Code: code, Op: "call Remote.Header", Err: err}
}

// parseURL parses and checks r.URL. The result has no fragment.
func (r *Remote) parseURL() (*url.URL, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		// The error of url.Parse is not returned, because it quotes the URL, which may
		// contain a password.
		scheme, host := "", ""
		if err == nil {
			scheme, host = u.Scheme, u.Host
		}
		return nil, &listwatch.Error{
			Code: listwatch.Invalid,
			Message: "Remote.URL has scheme " + strconv.Quote(scheme) + " and host " + strconv.Quote(host) +
				", want a URL like https://example.com/things",
		}
	}
	for _, f := range r.Framings {
		if framing.EncodingOf(f) != r.encoding() {
			return nil, &listwatch.Error{
				Code:    listwatch.Invalid,
				Message: fmt.Sprintf("Remote.Framings: %T and %T have different encodings", r.Framings[0], f),
			}
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// encoding returns the encoding of the objects, or nil if they are JSON.
func (r *Remote) encoding() listwatch.Encoding {
	if len(r.Framings) == 0 {
		return nil
	}
	return framing.EncodingOf(r.Framings[0])
}

// bodyType returns the media type of lists and of single objects.
func (r *Remote) bodyType() string {
	if e, ok := r.encoding().(framing.ListEncoding); ok {
		return e.MediaType()
	}
	return "application/json"
}

func (r *Remote) idle() time.Duration { return cmp.Or(r.IdleTimeout, DefaultIdleTimeout) }

// codings returns the content codings to request, or nil.
func (r *Remote) codings() []string {
	if r.Compress {
		return transport.Codings()
	}
	return nil
}
