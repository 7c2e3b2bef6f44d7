package testapi

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/transport/h2"
)

// An endpoint is a server on the loopback interface. It keeps its port when it is restarted.
type endpoint struct {
	addr    string
	handler http.Handler
	config  *tls.Config

	listener net.Listener
	server   *http.Server
	served   chan struct{} // closed after server has stopped accepting connections

	mu    sync.Mutex
	conns map[*conn]bool // guarded by mu; http.Server does not track hijacked connections
}

func newEndpoint(addr string, handler http.Handler, config *tls.Config) *endpoint {
	return &endpoint{addr: addr, handler: handler, config: config, conns: map[*conn]bool{}}
}

func (e *endpoint) listen() error {
	l, err := ports.Listen(e.addr)
	if err != nil {
		return err
	}
	e.listener = l
	e.server = &http.Server{Handler: e.handler, ErrorLog: log.New(io.Discard, "", 0)}
	if e.config != nil {
		e.server.TLSConfig = e.config.Clone()
	}
	h2.Configure(e.server, h2.Config{})
	e.served = make(chan struct{})
	go func(s *http.Server, served chan struct{}) {
		defer close(served)
		tracked := &listener{l, e}
		if s.TLSConfig != nil {
			_ = s.ServeTLS(tracked, "", "")
		} else {
			_ = s.Serve(tracked)
		}
	}(e.server, e.served)
	return nil
}

// stop closes the listener and then all connections, so that clients cannot reconnect.
func (e *endpoint) stop() {
	_ = e.listener.Close()
	<-e.served
	e.cut(nil)
	_ = e.server.Close()
}

// cut resets all connections. If meanwhile is not nil, cut calls it before accepting new
// connections.
func (e *endpoint) cut(meanwhile func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.conns {
		_ = c.TCPConn.SetLinger(0)
		_ = c.TCPConn.Close()
	}
	clear(e.conns)
	if meanwhile != nil {
		meanwhile()
	}
}

type listener struct {
	net.Listener
	e *endpoint
}

func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{accepted.(*net.TCPConn), l.e}
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.e.conns[c] = true
	return c, nil
}

// A conn removes itself from its endpoint when it is closed.
type conn struct {
	*net.TCPConn
	e *endpoint
}

func (c *conn) Close() error {
	c.e.mu.Lock()
	delete(c.e.conns, c)
	c.e.mu.Unlock()
	return c.TCPConn.Close()
}
