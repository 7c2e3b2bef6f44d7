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
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// A server serves source on a network, and can be killed or drained and started again.
type server struct {
	// Immutable after construction.
	network network
	source  listwatch.Source
	times   times

	mu sync.Mutex
	// Guarded by mu.
	listener *fragile
	http     *http.Server
	watches  *watchserver.Server
	done     chan error
}

// start starts a process of the server, as it were.
func (s *server) start() error {
	l, err := s.network.listen()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = &fragile{Listener: l}
	s.watches = &watchserver.Server{
		Source: s.source, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Limits: watchserver.Limits{WriteTimeout: s.times.write},
		Timing: watchserver.Timing{Bookmark: s.times.bookmark, Timeout: s.times.watch, Heartbeat: s.times.heartbeat},
	}
	s.http = &http.Server{Handler: s.watches, ErrorLog: log.New(io.Discard, "", 0)}
	h2.Configure(s.http, transport.Options{WriteTimeout: s.times.write, PingInterval: s.times.heartbeat})
	s.done = make(chan error, 1)
	go func(srv *http.Server, l net.Listener, done chan error) { done <- srv.Serve(l) }(s.http, s.listener, s.done) // stop waits for it
	return nil
}

// dial connects to the process that runs now.
func (s *server) dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	addr := s.listener.Addr().String()
	s.mu.Unlock()
	return s.network.dial(ctx, addr)
}

// stop ends the process: gently, with a drain of at most the time of a write, or as kill -9 does.
func (s *server) stop(gently bool) {
	s.mu.Lock()
	l, srv, watches, done := s.listener, s.http, s.watches, s.done
	s.mu.Unlock()
	if gently {
		ctx, cancel := context.WithTimeout(context.Background(), s.times.write)
		_ = watches.Drain(ctx) // those who don't listen are cut off
		cancel()
	}
	l.kill()
	_ = srv.Close() // its listener is closed
	<-done
	// What has been taken over ends by itself; nothing of it may be left when the test is over.
	ctx, cancel := context.WithTimeout(context.Background(), s.times.write)
	defer cancel()
	_ = watches.Drain(ctx)
}
