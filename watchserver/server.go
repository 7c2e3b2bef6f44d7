package watchserver

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// A Server serves lists and watches. It is an [http.Handler] over Source; with [Server.Serve] one Server, with one set of limits and one
// Drain, serves any number of sources. Fields must not be changed once it is in use; it must not be copied.
type Server struct {
	// Source is what ServeHTTP serves. Nil: only Serve can be used.
	Source listwatch.Source
	// Transports are asked in turn which one a request is for. Nil: WebSocket for the same origin and AllowOrigins, HTTP/2,
	// and HTTP/1.1 for whatever is left.
	Transports []transport.Server
	// Framings are those that a client may ask for. Nil: all that package framing has.
	Framings *framing.Registry
	// AllowOrigins are the origins beside its own whose pages may open WebSockets, as patterns such as "https://*.example.com"
	// or "http://127.0.0.1:*". It counts where Transports is nil. For lists and the other transports see [CORS].
	AllowOrigins []string
	// NoCompression answers every client as if it could decompress nothing. Otherwise a client that says it can gets watches
	// compressed, and large lists. To set it is right where objects hold secrets beside text that others may choose, and others
	// may see how long the answers are: what is compressed gets shorter where the two are alike (the attack BREACH). An event is
	// compressed by itself, so only one object counts; a list is compressed as a whole. For some paths only, serve those with
	// another Server, or give Serve the request of [transport.Uncompressed].
	NoCompression bool
	// Limits bound what clients may ask for.
	Limits Limits
	// Timing says when things happen that nobody asked for.
	Timing Timing
	// ClientOf names the client of a request, for Limits.WatchesPerClient. Nil: its IP address.
	ClientOf func(*http.Request) string
	// Trace is told what happens; nil: nobody.
	Trace *Trace
	// Log receives what an operator should know: panics and failures of the source. Nil: slog.Default().
	Log *slog.Logger

	live registry
}

// Limits bound what clients may ask for. Zero fields have the defaults; negative ones are no limit.
type Limits struct {
	// Watches is how many may be open at once; zero: unlimited. One more is answered 429.
	Watches int
	// WatchesPerClient is how many of them one client may have; zero: unlimited.
	WatchesPerClient int
	// URLBytes bounds path and query; zero: 16 KiB. More is answered 414.
	URLBytes int
	// HeaderBytes bounds the request's headers; zero: 64 KiB. More is answered 431. http.Server.MaxHeaderBytes bounds what is
	// read at all.
	HeaderBytes int
	// BatchBytes is how many bytes of events go into one write; zero: 64 KiB. An event that is larger goes alone.
	BatchBytes int
	// WriteTimeout is [transport.Options.WriteTimeout].
	WriteTimeout time.Duration
}

// Timing says when a stream does something by itself. Zero fields have the defaults.
type Timing struct {
	// Bookmark is about how often a watch that allows bookmarks gets one. Zero: a minute; negative: only at the end.
	Bookmark time.Duration
	// Timeout is the least that a watch without timeoutSeconds lasts; it ends between once and twice that, at random, so that
	// clients don't come back all at once. Zero: 30 minutes; negative: never.
	Timeout time.Duration
	// Heartbeat is how long a stream may be silent before it shows that it lives, where the framing or the transport can. Zero: 20
	// seconds, well below the 60 after which proxies cut; negative: never.
	Heartbeat time.Duration
	// DrainSpread is the time over which Drain spreads the ends of watches. Zero: they all end at once, and clients spread
	// themselves by their jitter.
	DrainSpread time.Duration
}

// A Target is what one request is about, where that is not all of Server.Source.
type Endpoint struct {
	// Source is the collection.
	Source listwatch.Source
	// Namespace and Name are the scope that the request's path names; empty: all.
	Namespace, Name string
	// Watch is true where the path alone says that this is a watch.
	Watch bool
	// Represent offers other shapes of the objects than their own; nil: there are none.
	Represent RepresentationFunc
}

// ServeHTTP serves Source.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Serve(w, r, Endpoint{Source: s.Source})
}

// Serve answers a list or a watch of t. Errors are answered as a Kubernetes Status.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, t Endpoint) {
	CloseAfterChunkedRequest(w, r)
	if s.NoCompression {
		r = transport.WithoutCompression(r)
	}
	if err := s.serve(w, r, t); err != nil {
		s.Trace.refused(r, err)
		WriteError(w, r, err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, t Endpoint) error {
	if err := s.Limits.check(r); err != nil {
		return err
	}
	q, err := parseRequest(r, t)
	if err != nil {
		return err
	}
	if epoch := listwatch.Describe(t.Source).Epoch; epoch != "" {
		w.Header().Set(EpochHeader, epoch)
	}
	if q.watch {
		return s.watch(w, r, t, q)
	}
	return s.list(w, r, t, q)
}

// EpochHeader is the response header that bears [listwatch.Description.Epoch]: versions of another epoch mean nothing here.
const EpochHeader = transport.EpochHeader

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
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
