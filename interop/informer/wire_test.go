package informer

import (
	"context"
	"errors"
	"net"
	"sync"
)

// A wire is all connections of a client: it can be cut, and let nothing through.
type wire struct {
	mu sync.Mutex
	// Guarded by mu.
	conns   map[net.Conn]struct{}
	refused chan struct{} // closed by the first connection that is refused; nil: none is
	told    bool
}

func newWire() *wire { return &wire{conns: make(map[net.Conn]struct{})} }

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if w.isDown() {
		return nil, errDown
	}
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused != nil { // since a moment ago
		_ = c.Close()
		return nil, errDown
	}
	w.conns[c] = struct{}{}
	return c, nil
}

var errDown = errors.New("the wire is down")

// isDown is asked by who wants through, and tells whoever waits for that.
func (w *wire) isDown() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused != nil && !w.told {
		w.told = true
		close(w.refused)
	}
	return w.refused != nil
}

// cut resets all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	clear(w.conns)
}

// refuse lets nobody through until accept. The function returned waits until somebody has tried.
func (w *wire) refuse() (tried func()) {
	w.mu.Lock()
	refused := make(chan struct{})
	w.refused, w.told = refused, false
	w.mu.Unlock()
	w.cut()
	return func() { <-refused }
}

func (w *wire) accept() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = nil
}
