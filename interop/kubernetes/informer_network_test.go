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

func (n *clientNetwork) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if n.refuses() {
		return nil, errRefused
	}
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused != nil { // refuse was called during the dial
		_ = c.Close()
		return nil, errRefused
	}
	n.conns[c] = struct{}{}
	return c, nil
}

var errRefused = errors.New("the network refuses connections")

// refuses reports whether the network refuses connections. If so, it also unblocks
// waitForAttempt, the function that the last call of refuse returned.
func (n *clientNetwork) refuses() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused != nil && !n.refusedIsClosed {
		n.refusedIsClosed = true
		close(n.refused)
	}
	return n.refused != nil
}

// cut resets all connections.
func (n *clientNetwork) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	clear(n.conns)
}

// refuse cuts all connections and refuses new ones until accept is called. The returned
// function waits until a connection has been refused.
func (n *clientNetwork) refuse() (waitForAttempt func()) {
	n.mu.Lock()
	refused := make(chan struct{})
	n.refused, n.refusedIsClosed = refused, false
	n.mu.Unlock()
	n.cut()
	return func() { <-refused }
}

func (n *clientNetwork) accept() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused = nil
}
