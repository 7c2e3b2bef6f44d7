package robustness

import (
	"context"
	"net"
	"sync"
)

// A network creates listeners and dials them by their address.
type network interface {
	listen() (net.Listener, error)
	dial(ctx context.Context, addr string) (net.Conn, error)
}

// A tcpNetwork uses TCP on the loopback interface.
type tcpNetwork struct{}

func (tcpNetwork) listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func (tcpNetwork) dial(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// A killableListener remembers the connections that it accepted, including hijacked ones,
// so that a kill can reset all of them.
type killableListener struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func (f *killableListener) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err == nil {
		f.mu.Lock()
		f.conns = append(f.conns, c)
		f.mu.Unlock()
	}
	return c, err
}

// kill closes the listener and resets all connections.
func (f *killableListener) kill() {
	_ = f.Close() // it may already be closed
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		if c, ok := c.(interface{ SetLinger(int) error }); ok {
			_ = c.SetLinger(0) // the connection may already be closed
		}
		_ = c.Close()
	}
}
