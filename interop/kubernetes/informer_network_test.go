package kubernetes

import (
	"context"
	"errors"
	"net"
	"sync"
)

// A clientNetwork tracks all connections of a client. It can cut them and refuse new
// connections.
type clientNetwork struct {
	mu sync.Mutex
	// Guarded by mu.
	conns map[net.Conn]struct{}
	// refused is closed at the first refused connection. It is nil while connections are accepted.
	refused         chan struct{}
	refusedIsClosed bool
}

func newClientNetwork() *clientNetwork { return &clientNetwork{conns: make(map[net.Conn]struct{})} }

func (w *clientNetwork) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if w.refuses() {
		return nil, errRefused
	}
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused != nil { // refuse was called during the dial
		_ = c.Close()
		return nil, errRefused
	}
	w.conns[c] = struct{}{}
	return c, nil
}

var errRefused = errors.New("the network refuses connections")

// refuses reports whether the network refuses connections. If so, it also unblocks
// waitForAttempt, the function that the last call of refuse returned.
func (w *clientNetwork) refuses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused != nil && !w.refusedIsClosed {
		w.refusedIsClosed = true
		close(w.refused)
	}
	return w.refused != nil
}

// cut resets all connections.
func (w *clientNetwork) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	clear(w.conns)
}

// refuse cuts all connections and refuses new ones until accept is called. The returned
// function waits until a connection has been refused.
func (w *clientNetwork) refuse() (waitForAttempt func()) {
	w.mu.Lock()
	refused := make(chan struct{})
	w.refused, w.refusedIsClosed = refused, false
	w.mu.Unlock()
	w.cut()
	return func() { <-refused }
}

func (w *clientNetwork) accept() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = nil
}
