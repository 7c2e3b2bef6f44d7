package robustness

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// A server serves a source on a network. It can be killed or drained, and started again.
type server struct {
	// Immutable after construction.
	network network
	source  listwatch.Source
	timings timings

	mu sync.Mutex
	// Guarded by mu.
	listener *killableListener
	http     *http.Server
	watches  *watchserver.Server
	done     chan error
}

// start simulates the start of a server process.
func (s *server) start() error {
	l, err := s.network.listen()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = &killableListener{Listener: l}
	s.watches = &watchserver.Server{
		Source: s.source, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Limits: watchserver.Limits{WriteTimeout: s.timings.writeTimeout},
		Timing: watchserver.Timing{
			Bookmark: s.timings.bookmarkInterval, Timeout: s.timings.watchTimeout,
			Heartbeat: s.timings.heartbeatInterval,
		},
	}
	s.http = &http.Server{Handler: s.watches, ErrorLog: log.New(io.Discard, "", 0)}
	h2.Configure(s.http, h2.Config{WriteTimeout: s.timings.writeTimeout, PingInterval: s.timings.heartbeatInterval})
	s.done = make(chan error, 1)
	// stop waits for this goroutine.
	go func(srv *http.Server, l net.Listener, done chan error) { done <- srv.Serve(l) }(s.http, s.listener, s.done)
	return nil
}

// dial connects to the running server.
func (s *server) dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	addr := s.listener.Addr().String()
	s.mu.Unlock()
	return s.network.dial(ctx, addr)
}

// stop simulates the end of the process: a drain of at most writeTimeout, or kill -9.
func (s *server) stop(gracefully bool) {
	s.mu.Lock()
	l, srv, watches, done := s.listener, s.http, s.watches, s.done
	s.mu.Unlock()
	if gracefully {
		ctx, cancel := context.WithTimeout(context.Background(), s.timings.writeTimeout)
		_ = watches.Drain(ctx) // the remaining streams are reset below
		cancel()
	}
	l.kill()
	_ = srv.Close() // it can only report that the listener is already closed
	<-done
	// Close does not end hijacked connections. The streams on them end because kill has reset the
	// connections. Wait for these streams, so that no goroutines remain.
	ctx, cancel := context.WithTimeout(context.Background(), s.timings.writeTimeout)
	defer cancel()
	_ = watches.Drain(ctx)
}
