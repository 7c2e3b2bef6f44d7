package kubetest

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
)

// An endpoint listens on one port of loopback, the same one whenever it is started.
type endpoint struct {
	handler http.Handler
	config  *tls.Config
	addr    string // set by the first listen

	listener net.Listener
	server   *http.Server
	served   chan struct{} // closed when server accepts no more

	mu    sync.Mutex
	conns map[*conn]bool // guarded by mu; http.Server forgets those that a handler has taken over
}

func newEndpoint(handler http.Handler, config *tls.Config) *endpoint {
	return &endpoint{handler: handler, config: config, addr: "127.0.0.1:0", conns: map[*conn]bool{}}
}

func (e *endpoint) listen() error {
	l, err := net.Listen("tcp", e.addr)
	if err != nil {
		return err
	}
	e.addr, e.listener = l.Addr().String(), l
	e.server = &http.Server{Handler: e.handler, ErrorLog: log.New(io.Discard, "", 0)}
	if e.config != nil {
		e.server.TLSConfig = e.config.Clone()
	}
	h2.Configure(e.server, transport.Options{})
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

// stop ends the listener, so that whoever comes back is refused, and then all connections.
func (e *endpoint) stop() {
	_ = e.listener.Close()
	<-e.served
	e.cut(nil)
	_ = e.server.Close()
}

// cut resets all connections and calls before, if it is not nil, before it lets new ones in.
func (e *endpoint) cut(before func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.conns {
		_ = c.TCPConn.SetLinger(0)
		_ = c.TCPConn.Close()
	}
	clear(e.conns)
	if before != nil {
		before()
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

// A conn is forgotten when it is closed.
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
