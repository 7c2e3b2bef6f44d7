package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// A Remote is the Source behind a URL. The zero Remote but for URL is ready. It is safe for concurrent use; fields must not be
// changed once it is in use, and it must not be copied.
type Remote struct {
	// URL is where the collection is: http or https. Its query goes with every request: selectors in it are demanded beside
	// those of a Query, timeoutSeconds is how long the server may keep a stream, and what else a Query says is dropped.
	URL string
	// Network is how the server is reached, by lists and, where Transports is nil, by watches.
	Network transport.Network
	// Transports are those to watch over, best first. Nil: for https HTTP/2, then HTTP/1.1, then WebSocket; for http
	// HTTP/1.1, then WebSocket.
	//
	// HTTP/2 comes first because all watches share connections and pings find a server that vanished; in clear text nothing
	// tells who speaks it, so there it must be asked for. HTTP/1.1 is what every server speaks, and its refusals mean what
	// they say. WebSocket is for networks that hold long responses back.
	Transports []transport.Client
	// HTTP is what lists are asked with. Nil: HTTP/2 where ALPN gives it, else HTTP/1.1, over Network.
	HTTPClient *http.Client
	// Header returns what a request is to bear, such as Authorization; nil: nothing. It is called before each request, and
	// once more with refresh where the server answered 401: what was returned before is not believed any more. It may be
	// called from several goroutines. An error without a code counts as Unavailable.
	Header func(ctx context.Context, refresh bool) (http.Header, error)
	// Framings are those to watch in, best first; nil: JSON alone. Lists are JSON.
	Framings []framing.Framer
	// Compress asks the server to compress streams and lists, which it may do or not. It is for networks that are slow or cost money:
	// an event of some KiB has half the bytes, and takes some microseconds more at both ends.
	Compress bool
	// Limit is how many bytes one event or one object of a list may have, decompressed; zero or negative: [framing.DefaultLimit].
	MaxObjectBytes int
	// ListLimit is how many bytes a page of a list may have, decompressed. Zero: [DefaultListLimit]; negative: unlimited.
	MaxListBytes int64
	// Idle is the silence after which a stream or a list is given up. Zero: [DefaultIdle]; negative: never.
	IdleTimeout time.Duration
	// Backoff is how long a watcher waits before it opens another stream.
	Backoff listwatch.Backoff
	// Trace is told what watchers do; nil: nobody.
	Trace *Trace

	state state
}

var (
	_ listwatch.Source    = (*Remote)(nil)
	_ listwatch.Describer = (*Remote)(nil)
)

// The defaults of [Remote].
const (
	// DefaultIdle is two and a half times the minute after which servers send a bookmark.
	DefaultIdleTimeout = 150 * time.Second
	// DefaultListLimit is 1 GiB.
	DefaultMaxListBytes = 1 << 30
)

// state is what a Remote has learnt.
type state struct {
	once      sync.Once
	http      *http.Client // for lists; made by once
	fallback  fallback     // filled by once
	watchList reflector.WatchListSupport
	described atomic.Bool // Kind and APIVersion are known

	mu sync.Mutex
	// Guarded by mu.
	description listwatch.Description
}

// init makes what the zero value lacks.
func (r *Remote) init() {
	r.state.once.Do(func() {
		if r.state.http = r.HTTPClient; r.HTTPClient == nil {
			protocols := new(http.Protocols)
			protocols.SetHTTP1(true)
			protocols.SetHTTP2(true)
			r.state.http = transport.HTTPClient(r.Network.HTTPTransport(protocols))
		}
		transports := r.Transports
		if transports == nil {
			transports = r.defaultTransports()
		}
		for _, t := range transports {
			r.state.fallback.candidates = append(r.state.fallback.candidates, &candidate{client: t})
		}
	})
}

func (r *Remote) defaultTransports() []transport.Client {
	h1 := []transport.Client{&chunked.Client{Network: r.Network}, &websocket.Client{Network: r.Network}}
	if u, err := url.Parse(r.URL); err == nil && u.Scheme == "https" {
		return append([]transport.Client{&h2.Client{Network: r.Network}}, h1...)
	}
	return h1
}

// Close closes the connections that nothing uses, also those of Transports and HTTP. Watchers live on, and the Remote can be used
// after it. The error is always nil.
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

// Describe returns what the server's answers have told so far: nothing before the first. Fields are never known.
func (r *Remote) Describe() listwatch.Description {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.state.description
}

// learnKind takes down what the objects are.
func (r *Remote) learnKind(apiVersion, kind string) {
	if apiVersion == "" || kind == "" || r.state.described.Load() {
		return
	}
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	r.state.description.APIVersion, r.state.description.Kind = apiVersion, kind
	r.state.described.Store(true)
}

// learnFrom is learnKind from an object or a bookmark.
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

// epoch returns the one the server named last; empty: none.
func (r *Remote) epoch() string { return r.Describe().Epoch }

func (r *Remote) learnEpoch(epoch string) {
	if epoch == "" {
		return
	}
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	r.state.description.Epoch = epoch
}

// authorized calls try with the headers that Header returns, and once more with fresh ones where the server did not know them.
func (r *Remote) authorized(ctx context.Context, refresh bool, try func(http.Header) error) error {
	for {
		var h http.Header
		if r.Header != nil {
			var err error
			if h, err = r.Header(ctx, refresh); err != nil {
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

func headerError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := listwatch.CodeOf(err)
	if code == listwatch.Unknown {
		code = listwatch.Unavailable
	}
	return &listwatch.Error{Code: code, Op: "make the headers of a request", Err: err}
}

// target returns URL, parsed.
func (r *Remote) parseURL() (*url.URL, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		// The URL may hold a password, so an error of url.Parse, which quotes it, is left out.
		scheme, rest := "", ""
		if err == nil {
			scheme, rest = u.Scheme, u.Host
		}
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: "the URL of a Remote has scheme " + strconv.Quote(scheme) + " and host " + strconv.Quote(rest) +
				", want one like https://example.com/things",
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

func (r *Remote) idle() time.Duration {
	if r.IdleTimeout == 0 {
		return DefaultIdleTimeout
	}
	return r.IdleTimeout
}

// codings returns the content codings to ask for; nil: none.
func (r *Remote) codings() []string {
	if r.Compress {
		return transport.Codings()
	}
	return nil
}

func (r *Remote) limit() int {
	if r.MaxObjectBytes <= 0 {
		return framing.DefaultLimit
	}
	return r.MaxObjectBytes
}
