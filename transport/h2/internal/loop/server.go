package loop

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// A Server serves the HTTP/2 connections of one http.Server. The zero value is ready to use.
type Server struct {
	Options

	mu sync.Mutex
	// Guarded by mu.
	conns        map[*conn]struct{}
	shuttingDown bool
}

// Register makes hs use s for HTTP/2. hs.Protocols determines whether hs serves HTTP/2 over TLS,
// with prior knowledge in clear text, or both.
func (s *Server) Register(hs *http.Server) {
	if hs.TLSNextProto == nil {
		hs.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	// Both keys are needed. Without "h2", net/http replaces both functions with its own. Without
	// the other key, it serves no HTTP/2 in clear text.
	hs.TLSNextProto["h2"] = s.serve
	hs.TLSNextProto["unencrypted_http2"] = s.serve
	hs.RegisterOnShutdown(s.shutdown)
}

// serve serves a connection of net/http until it ends. In clear text tc does not use TLS; it only
// wraps the connection, whose preface net/http has already read.
func (s *Server) serve(hs *http.Server, tc *tls.Conn, h http.Handler) {
	ctx := context.Background()
	if b, ok := h.(interface{ BaseContext() context.Context }); ok {
		ctx = b.BaseContext()
	}
	if u, ok := tc.NetConn().(interface{ UnencryptedNetConn() net.Conn }); ok {
		s.run(ctx, newConn(hs, u.UnencryptedNetConn(), nil, h, s.Options))
		return
	}
	state := tc.ConnectionState()
	s.run(ctx, newConn(hs, tc, &state, h, s.Options))
}

// run serves c until it ends.
func (s *Server) run(ctx context.Context, c *conn) {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.settings.prefaceTimeout))
	c.open() // before add, because the SETTINGS must precede a GOAWAY
	if s.add(c) {
		c.mu.Lock()
		c.goAway()
		c.mu.Unlock()
	}
	defer s.remove(c)
	c.serve(ctx)
}

// add adds c and reports whether the http.Server is shutting down.
func (s *Server) add(c *conn) (shuttingDown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = make(map[*conn]struct{})
	}
	s.conns[c] = struct{}{}
	return s.shuttingDown
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// shutdown makes all connections refuse new streams. Each connection ends with its last stream.
func (s *Server) shutdown() {
	s.mu.Lock()
	s.shuttingDown = true
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.mu.Lock()
		c.goAway()
		c.mu.Unlock()
	}
}
