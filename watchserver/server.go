package watchserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/internal/wire/frames"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// A Server serves lists and watches. It is an [http.Handler] for Source. Its method
// [Server.Serve] serves other sources as well, so that one Server, with one set of limits and
// one Drain, can serve many collections.
//
// All methods are safe for concurrent use. Do not change fields after the first request, and do
// not copy a Server.
type Server struct {
	// Source is the collection that ServeHTTP serves. It may be nil if only Serve is used.
	Source listwatch.Source
	// Transports are the transports that can serve a watch. The first one that claims the
	// request serves it. If nil, they are WebSocket (with AllowOrigins), HTTP/2, and
	// HTTP/1.1 for all other requests.
	Transports []transport.Server
	// Framings are the framings that a client may request. If nil, all framings of package
	// framing are offered.
	Framings *framing.Registry
	// AllowOrigins are the origins, in addition to the server's own, whose pages may open a
	// WebSocket. They are patterns such as "https://*.example.com" or "http://127.0.0.1:*". The
	// field is ignored if Transports is set. For lists and the other transports, see [CORS].
	AllowOrigins []string
	// NoCompression disables compression. Otherwise watches, and lists above 32 KiB, are
	// compressed for clients that accept it.
	//
	// Set it if objects contain both secrets and text that an attacker can choose, and the
	// attacker can observe the length of responses: compressed text gets shorter where the
	// two are alike (the BREACH attack). Each event is compressed separately, so an
	// attacker learns about one object at a time, unless SharedCompression is set. A list is
	// compressed as a whole. To disable compression for some requests only, pass them through
	// [transport.WithoutCompression] before Serve.
	NoCompression bool
	// SharedCompression is [Endpoint.SharedCompression] for Source.
	SharedCompression SharedCompression
	// Limits limit the resources that clients can use.
	Limits Limits
	// Stored are the collections whose objects and history count against Limits.Memory. kubeapi
	// adds its collections.
	Stored []Sized
	// Timing configures bookmarks, timeouts and heartbeats.
	Timing Timing
	// Detach lets the handler return while a watch on a hijacked connection continues, which saves
	// the memory of the request and of a goroutine with a larger stack (docs/performance.md). Set
	// it only if no middleware must know about the watches: middleware then sees a request that
	// ends at once, and the end of the request's context does not end the watch.
	Detach bool
	// Authenticator identifies the user of each request. The methods of Source can pass their
	// context to [UserOf] to get the user. If nil, every request is served, unless a handler that
	// wraps the Server refuses it.
	Authenticator Authenticator
	// ClientOf returns the name of a request's client, for the limits of one client. If nil, it is
	// the user's name or, if that is unknown, the IP address.
	ClientOf func(*http.Request) string
	// TrustedProxies are the addresses of proxies whose header X-Forwarded-For names the client.
	// If empty, the client has the address of the connection.
	TrustedProxies []netip.Prefix
	// Trace, if not nil, receives events for logging and metrics.
	Trace *Trace
	// Log receives panics of sources and framings. If nil, slog.Default() is used.
	Log *slog.Logger

	watches  watchSet
	rechecks atomic.Uint64 // the number of calls of Recheck
	budget   budget.Budget
	turns    budget.Turns
	stored   storedMemory
	timers   timers.Queue // wakes the streams

	segmenterOnce sync.Once
	segmenter     *frames.Segmenter // see sharedSegmenter
}

// Limits limit the resources that clients can use. If a field is zero, its default is used;
// a negative value disables the limit.
type Limits struct {
	// Watches is the maximum number of open watches. Further watches are refused with
	// status 429. The default is no limit.
	Watches int
	// WatchesPerClient is the maximum number of open watches of one client. Further watches
	// are refused with status 429. The default is no limit.
	WatchesPerClient int
	// Requests is the maximum number of seats. A list, a read or a write takes one seat while it is
	// served. A list takes one more for each MiB, up to ten in all. One client may take half of the
	// seats. Further requests are refused with status 429. The default is [DefaultRequests], as in
	// kube-apiserver.
	Requests int
	// Writes is the maximum number of writes being executed. One client may take half of them.
	// Further writes are refused with status 429. The default is [DefaultWrites], as in
	// kube-apiserver.
	Writes int
	// Memory is the maximum number of bytes for stored data and for requests. Stored data is the
	// objects and the history of Server.Stored. When it fills three quarters of Memory, writes
	// other than deletes are refused with status 507. Requests have the rest, and one client may
	// take half of the rest. A body counts four times, because parsers copy it, and a list counts
	// as 1 MiB, because it refers to the objects. Further requests are refused with status 429. The
	// default is [DefaultMemory].
	Memory int64
	// URLBytes is the maximum length of the path and the query of a URL. Any request with a longer
	// URL is refused with status 414; see [Server.CheckRequest]. The default is [DefaultURLBytes].
	URLBytes int
	// HeaderBytes is the maximum size of the request's headers. Larger headers are refused
	// with status 431. The default is [DefaultHeaderBytes]. http.Server.MaxHeaderBytes
	// limits how many bytes are read at all, by default 128 KiB with h2.Configure.
	HeaderBytes int
	// BatchBytes is the maximum number of bytes of events in one write. An event that is
	// larger is written on its own. The default is [DefaultBatchBytes].
	BatchBytes int
	// WriteTimeout is [transport.Options.WriteTimeout]: a client that accepts no byte for
	// this time is disconnected. The default is [transport.DefaultWriteTimeout].
	WriteTimeout time.Duration
	// Compressors is the maximum number of compressors that hold the history of events for
	// [SharedCompression], each of about a megabyte. There is one for each wire form of each
	// selection that several clients watch. If there are too few compressors, the events of the
	// other selections are compressed separately. The default is [DefaultCompressors].
	Compressors int
}

// Timing configures bookmarks, timeouts and heartbeats. If a field is zero, its default is
// used. Values above a year count as a year.
type Timing struct {
	// Bookmark is the average interval between the bookmarks of a watch that allows them; each
	// interval varies by a quarter. If negative, a watch has bookmarks only at the end of its
	// initial events and at its own end. The default is [DefaultBookmark].
	Bookmark time.Duration
	// Timeout is the minimum duration of a watch without timeoutSeconds. Such a watch ends
	// at a random time between Timeout and twice Timeout, so that clients do not all
	// reconnect at once. If negative, it has no timeout. The default is [DefaultTimeout].
	Timeout time.Duration
	// Heartbeat is the idle time after which a stream sends a heartbeat, if its framing or
	// transport has one. The default, [DefaultHeartbeat], is well below the 60 s after which
	// proxies close idle connections. If negative, no heartbeats are sent.
	Heartbeat time.Duration
	// DrainSpread is the period over which Drain spreads the ends of the watches. If it is zero
	// or negative, all watches end at once, and the clients' own jitter spreads their
	// reconnects.
	DrainSpread time.Duration
}

// The defaults of [Limits] and [Timing].
const (
	DefaultRequests    = 400
	DefaultWrites      = 200
	DefaultMemory      = 1 << 30
	DefaultURLBytes    = 16 << 10
	DefaultHeaderBytes = 64 << 10
	DefaultBatchBytes  = 64 << 10
	DefaultCompressors = 32
	DefaultBookmark    = time.Minute
	DefaultTimeout     = 30 * time.Minute
	DefaultHeartbeat   = 20 * time.Second
)

// An Endpoint is the collection, or the part of one, that a request addresses.
type Endpoint struct {
	// Source is the collection.
	Source listwatch.Source
	// Namespace and Name restrict the request to the scope in its path. Empty values mean
	// no restriction.
	Namespace, Name string
	// Labels and Fields restrict the request to the objects that they select, in addition to the
	// client's own selectors. A client cannot see any other object, so a selector that depends on
	// the user isolates tenants from each other. Build it with [listwatch.LabelEquals] or
	// [listwatch.FieldEquals], which do not parse the value. An object that stops matching is
	// reported as deleted, with its last state that matched. The zero values select everything.
	Labels listwatch.LabelSelector
	Fields listwatch.FieldSelector
	// Until is the time until which the client may use the endpoint, such as the expiry of its
	// credentials. At that time a watch ends with UntilError as an ERROR event. Later requests are
	// refused with the same error. If zero, there is no such time.
	//
	// To end a watch early, cancel the context of its request, preferably with a
	// *listwatch.Error as the cause, or call [Server.End].
	Until time.Time
	// UntilError is the error that clients receive after Until. If nil, they receive status 401.
	UntilError error
	// Authorize returns an error if the user may not use the endpoint. The error is sent with
	// status 403 unless it has another code. ctx has the values of the request's context.
	// [Server.Recheck] calls Authorize again for each open watch. If nil, every user may use the
	// endpoint.
	Authorize func(ctx context.Context, user User) error
	// Watch makes the request a watch even without the parameter watch, as paths such as
	// /api/v1/watch/pods require.
	Watch bool
	// Represent offers other representations of the objects. If nil, there are none.
	Represent RepresentationFunc
	// SharedCompression selects the watches whose events are compressed with the history of the
	// events before them. The default is [ShareNever]; see [SharedCompression] for the risk.
	SharedCompression SharedCompression

	rechecks uint64 // the value of Server.rechecks when the request began
}

// ServeHTTP serves Source.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Serve(w, r, Endpoint{Source: s.Source, SharedCompression: s.SharedCompression})
}

// Serve responds to r with a list or a watch of e. An error becomes a Kubernetes Status.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, e Endpoint) {
	e.rechecks = s.rechecks.Load()
	GuardBody(w, r)
	if s.NoCompression {
		r = transport.WithoutCompression(r)
	}
	err := s.CheckRequest(r)
	if err == nil {
		r, err = s.authenticate(r)
	}
	if err == nil {
		r = s.withResource(r, e)
		err = s.serve(w, r, e)
	}
	if err != nil {
		if ended := r.Context().Err(); ended != nil && errors.Is(err, ended) {
			err = contextError(r.Context())
		}
		s.Refuse(w, r, err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, e Endpoint) error {
	if expires := UserOf(r.Context()).Expires; !expires.IsZero() && (e.Until.IsZero() || expires.Before(e.Until)) {
		e.Until, e.UntilError = expires, nil
	}
	if !e.Until.IsZero() && !time.Now().Before(e.Until) {
		return e.untilError()
	}
	if err := authorizer(e.Authorize).check(r.Context(), UserOf(r.Context())); err != nil {
		return err
	}
	q, err := parseRequest(r, e)
	if err != nil {
		return err
	}
	if epoch := listwatch.Describe(e.Source).Epoch; epoch != "" {
		w.Header().Set(transport.EpochHeader, epoch)
	}
	if q.watch {
		return s.watch(w, r, e, q)
	}
	return s.list(w, r, e, q)
}

func (s *Server) transports() []transport.Server {
	if s.Transports != nil {
		return s.Transports
	}
	return []transport.Server{&websocket.Server{AllowOrigins: s.AllowOrigins}, &h2.Server{}, &chunked.Server{}}
}

func (s *Server) logger() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.Default()
}

func (s *Server) clientOf(r *http.Request) string {
	if s.ClientOf != nil {
		return s.ClientOf(r)
	}
	if u := UserOf(r.Context()); u.Name != "" && !slices.Contains(u.Groups, "system:unauthenticated") {
		return u.Name
	}
	return clientAddress(r, s.TrustedProxies)
}

// clientAddress returns the address of the connection of r. If that address belongs to a trusted
// proxy, clientAddress returns the last address in X-Forwarded-For that is not in trusted, because
// each proxy appends the address of its client.
func clientAddress(r *http.Request, trusted []netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if len(trusted) == 0 {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for len(hops) > 0 {
		addr, err := netip.ParseAddr(host)
		if err != nil || !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) }) {
			break
		}
		last, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1]))
		if err != nil {
			break
		}
		host, hops = last.String(), hops[:len(hops)-1]
	}
	return host
}
