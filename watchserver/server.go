package watchserver

import (
	"cmp"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/timers"
	"github.com/listwatch/listwatch/internal/wire"
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
	// request serves it. If nil, they are WebSocket, HTTP/2, and HTTP/1.1 for all other requests.
	Transports []transport.Server
	// Framings are the framings that a client may request. If nil, all framings of package
	// framing are offered. A collection with an encoding needs a [framing.EncodedFramer] of its
	// encoding; only framings of its encoding are offered for it.
	Framings *framing.Registry
	// Access determines who may use the server.
	Access Access
	// NoCompression disables compression. Otherwise watches, and lists above 32 KiB, are
	// compressed for clients that accept it.
	//
	// Set it if objects contain both secrets and text that an attacker can choose, and the
	// attacker can observe the length of responses: compressed text gets shorter where the
	// two are alike (the BREACH attack). Each event is compressed separately, so an
	// attacker learns about one object at a time, unless SharedCompression is set. A list is
	// compressed in blocks of some 128 KiB. To disable compression for some requests only, pass
	// them through [transport.WithoutCompression] before Serve.
	NoCompression bool
	// SharedCompression is [Endpoint.SharedCompression] for Source.
	SharedCompression SharedCompression
	// Limits limit the resources that clients can use.
	Limits Limits
	// Timing configures bookmarks, timeouts and heartbeats.
	Timing Timing
	// Detach lets the handler return while a watch on a hijacked connection continues, which saves
	// the memory of the request and of a goroutine with a larger stack (docs/performance.md). Set
	// it only if no middleware needs to know about the watches: middleware then sees a request that
	// ends at once, and the end of the request's context does not end the watch.
	Detach bool
	// Trace, if not nil, receives events for logging and metrics.
	Trace *Trace
	// Log receives panics of sources and framings. If nil, slog.Default() is used.
	Log *slog.Logger

	watches watchSet
	timers  timers.Queue // wakes the streams

	gateOnce sync.Once
	gate     apihttp.Gate // see entrance

	segmenterOnce sync.Once
	segmenter     *frames.Segmenter // see sharedSegmenter
}

// ServeHTTP serves Source.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Serve(w, r, Endpoint{Source: s.Source, SharedCompression: s.SharedCompression})
}

// Serve responds to r with a list or a watch of e. An error becomes a Kubernetes Status.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, e Endpoint) {
	r, a, ok := s.entrance().Enter(w, r)
	if !ok {
		return
	}
	defer a.Leave()
	st, out, err := s.serve(w, r, a, e)
	// serve has returned, because its frames would double the stack of a goroutine that waits.
	complete(w, r, a, st, out, err)
}

// complete runs st. If st is nil, it sends the error response for err, if any.
func complete(
	w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, st *stream, out *transport.Stream, err error,
) {
	if st == nil {
		a.Respond(w, r, err)
		return
	}
	if st.run(out) != nil {
		panic(http.ErrAbortHandler)
	}
}

// Union returns a handler for lists and watches of several collections of one database, as one list
// at one version, or as one stream; see [listwatch.Uniter]. Serve it at a path of its own, such as
// /watch.
//
// Each parameter named "of" in the query is the relative URL of one of the collections, with its
// labelSelector, fieldSelector and fields. routes must serve these URLs with the method Serve of s.
// The handler sends a request of the same user to routes for each of them, so the routing, the
// permissions and the restrictions of that URL apply. If routes refuses one, the response is that
// refusal. An open watch ends when the user may no longer watch one of the collections; see
// [Server.Recheck]. routes must not have side effects for GET.
func (s *Server) Union(routes http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, a, ok := s.entrance().Enter(w, r)
		if !ok {
			return
		}
		defer a.Leave()
		u := &union{server: s, routes: routes, admitted: a}
		st, out, err := u.serve(w, r)
		complete(w, r, a, st, out, err)
	})
}

// serve responds with a list, or opens a watch. It returns the stream if the caller must run it.
func (s *Server) serve(
	w http.ResponseWriter, r *http.Request, a *apihttp.Admitted, e Endpoint,
) (*stream, *transport.Stream, error) {
	if a.Resource == (apihttp.Resource{}) {
		a.Resource = e.resource()
	}
	e, err := e.admit(r)
	if err != nil {
		return nil, nil, err
	}
	q, err := parseRequest(r, a.Parsed, e)
	if err != nil {
		return nil, nil, err
	}
	if part := unionPartOf(r); part != nil {
		part.server, part.user, part.endpoint, part.request = s, UserOf(r.Context()), e, q
		return nil, nil, nil
	}
	apihttp.SetEpoch(w.Header(), e.Source)
	apihttp.OfferQuery(w.Header())
	if q.Watch {
		return s.watch(w, r, a, e, q)
	}
	return nil, nil, s.list(w, r, a, e, q)
}

// Gate returns a handler that passes a request on to next only if s admits it: if its URL, its
// headers and its origin are acceptable, and if Access.Authenticator accepts its credentials. Use
// it for handlers at other paths of the same server, such as handlers that write. They get the user
// from [UserOf]. Serve includes the gate, and repeats no check if the request has passed it.
func (s *Server) Gate(next http.Handler) http.Handler { return s.entrance().Handler(next) }

// entrance returns the gate of s.
func (s *Server) entrance() *apihttp.Gate {
	s.gateOnce.Do(func() {
		g := &s.gate
		g.AllowOrigins = func() []string { return s.Access.Origins }
		g.NoCompression = func() bool { return s.NoCompression }
		g.Limits, g.Draining = s.Limits.ofRequests, s.watches.drainContext
		g.Sender, g.Authenticate = s.Access.sender, s.Access.authenticate
		g.Refused, g.Changed = s.traceRefused, s.traceChange
	})
	return &s.gate
}

// traceRefused calls Trace.Refused for the error response to r.
func (s *Server) traceRefused(r *http.Request, a *apihttp.Admitted, err error) {
	if t := s.Trace; t != nil && t.Refused != nil {
		t.Refused(r.Context(), describeRequest(r, a), err)
	}
}

// traceChange calls Trace.Changed for the write r.
func (s *Server) traceChange(r *http.Request, a *apihttp.Admitted, c apihttp.Change) {
	if t := s.Trace; t != nil && t.Changed != nil {
		t.Changed(r.Context(), Change{
			Request: describeRequest(r, a), Verb: c.Verb, Key: c.Key, Version: c.Version, DryRun: c.DryRun,
			Took: c.Took,
		})
	}
}

func (s *Server) transports() []transport.Server {
	if s.Transports != nil {
		return s.Transports
	}
	return []transport.Server{&websocket.Server{}, &h2.Server{}, &chunked.Server{}}
}

func (s *Server) logger() *slog.Logger { return cmp.Or(s.Log, slog.Default()) }

func (s *Server) framings() *framing.Registry { return cmp.Or(s.Framings, framing.Default()) }

func (s *Server) transportOptions(framings *framing.Registry) transport.Options {
	return transport.Options{
		Framings: framings, AllowOrigins: s.Access.Origins, WriteTimeout: s.Limits.WriteTimeout,
		PingInterval: s.Timing.Heartbeat, Detach: s.Detach,
	}
}

// sharedSegmenter returns the Segmenter of all watches of s.
func (s *Server) sharedSegmenter() *frames.Segmenter {
	s.segmenterOnce.Do(func() {
		s.segmenter = wire.NewSegmenter(cmp.Or(s.Limits.Compressors, DefaultCompressors))
	})
	return s.segmenter
}

// batchBytes returns Limits.BatchBytes, or its default.
func (s *Server) batchBytes() int {
	if n := cmp.Or(s.Limits.BatchBytes, DefaultBatchBytes); n > 0 {
		return n
	}
	return math.MaxInt
}

// timerAt converts a time of the wall clock to the time of a timer. The result is now if the time
// has passed, and at most maxDuration from now. It becomes wrong if the clock is set, so callers
// read the clock again when the timer fires.
func (s *Server) timerAt(at time.Time) timers.Time {
	return s.timers.Now().Add(min(max(0, time.Until(at)), maxDuration))
}
