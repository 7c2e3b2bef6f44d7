package testhttp

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/listwatch/listwatch/internal/memnet"
)

// A Test is the part of a testing.TB that [Start] needs.
type Test interface {
	// Helper marks the caller as a helper of the test.
	Helper()
	// Cleanup registers f to be called when the test has finished.
	Cleanup(f func())
	// Fatal fails the test and stops it.
	Fatal(args ...any)
}

// Options configure a [Server]. The zero value serves clear text in memory.
type Options struct {
	// Configure, if not nil, changes the http.Server before it starts.
	Configure func(*http.Server)
	// TLS enables https. The certificate is valid for 127.0.0.1, and in the fake time of a
	// synctest bubble.
	TLS bool
	// ConfigureTLS, if not nil, changes the server's TLS configuration before it starts.
	ConfigureTLS func(*tls.Config)
	// Sockets makes the server listen on a port of 127.0.0.1 instead of in memory.
	Sockets bool
}

// A Server is a running HTTP server. It is safe for concurrent use.
type Server struct {
	// Dial connects to the server and ignores the address. It is nil if Options.Sockets is set,
	// because any dialer works then.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// ClientTLS is the configuration of clients that trust the server. It is nil unless Options.TLS
	// is set.
	ClientTLS *tls.Config

	http     *http.Server
	scheme   string
	listener net.Listener
	served   chan struct{} // closed when the http.Server no longer accepts connections

	mu    sync.Mutex
	conns []*memnet.Conn // the clients' ends; guarded by mu
}

// Start serves h until the test has finished or Close is called. The http.Server logs nothing
// unless Options.Configure sets its ErrorLog.
func Start(t Test, h http.Handler, o Options) *Server {
	t.Helper()
	s := &Server{
		http:   &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)},
		scheme: "http", served: make(chan struct{}),
	}
	if o.Configure != nil {
		o.Configure(s.http)
	}
	s.listen(t, o.Sockets)
	serve := s.http.Serve
	if o.TLS {
		s.scheme = "https"
		s.http.TLSConfig, s.ClientTLS = tlsConfigs()
		if o.ConfigureTLS != nil {
			o.ConfigureTLS(s.http.TLSConfig)
		}
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	go func() {
		defer close(s.served)
		_ = serve(s.listener) // always http.ErrServerClosed
	}()
	t.Cleanup(s.Close)
	return s
}

func (s *Server) listen(t Test, sockets bool) {
	t.Helper()
	if sockets {
		var err error
		if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		return
	}
	l := memnet.Listen()
	s.listener = l
	s.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := l.DialConn(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns = append(s.conns, c)
		return c, nil
	}
}

// URL returns the URL of path, which must begin with a slash and may have a query.
func (s *Server) URL(path string) string { return s.scheme + "://" + s.listener.Addr().String() + path }

// Conns returns the clients' ends of all connections dialed so far, including closed ones.
// With Options.Sockets it returns nil.
func (s *Server) Conns() []*memnet.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conns)
}

// ResetConns resets all connections dialed so far. New connections are still accepted.
func (s *Server) ResetConns() {
	for _, c := range s.Conns() {
		c.Reset()
	}
}

// Kill closes the listener and resets all connections, like a crash of the server.
func (s *Server) Kill() {
	s.listener.Close()
	s.ResetConns()
	s.Close()
}

// Close closes the listener and all connections that were not hijacked. It does not wait for
// handlers.
func (s *Server) Close() {
	s.http.Close()
	<-s.served
}
