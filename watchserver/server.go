package watchserver

import (
	"log/slog"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
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
	// request serves it. If nil, they are WebSocket, HTTP/2, and HTTP/1.1 for all other requests.
	Transports []transport.Server
	// Framings are the framings that a client may request. If nil, all framings of package
	// framing are offered.
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
	// compressed in blocks of some 64 KiB. To disable compression for some requests only, pass
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

func (s *Server) transports() []transport.Server {
	if s.Transports != nil {
		return s.Transports
	}
	return []transport.Server{&websocket.Server{}, &h2.Server{}, &chunked.Server{}}
}

func (s *Server) logger() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.Default()
}
