package robustness

import (
	"context"
	"net"
	"sync"

	"github.com/listwatch/listwatch/internal/memnet"
)

// A memoryNetwork is an in-memory network for synctest bubbles.
type memoryNetwork struct {
	mu        sync.Mutex
	listeners map[string]*memnet.Listener // guarded by mu
}

func (m *memoryNetwork) listen() (net.Listener, error) {
	l := memnet.Listen()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listeners == nil {
		m.listeners = make(map[string]*memnet.Listener)
	}
	m.listeners[l.Addr().String()] = l
	return l, nil
}

func (m *memoryNetwork) dial(ctx context.Context, addr string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[addr]
	m.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "mem", Err: net.ErrClosed}
	}
	return l.Dial(ctx, "", addr)
}
