package robustness

import (
	"context"
	"net"
	"sync"
)

// A network makes listeners, and dials them by their address.
type network interface {
	listen() (net.Listener, error)
	dial(ctx context.Context, addr string) (net.Conn, error)
}

// sockets is TCP on the loopback.
type sockets struct{}

func (sockets) listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func (sockets) dial(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// A fragile listener remembers what it has accepted, so that a server can be killed with all its connections, also those that handlers
// have taken over.
type fragile struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func (f *fragile) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err == nil {
		f.mu.Lock()
		f.conns = append(f.conns, c)
		f.mu.Unlock()
	}
	return c, err
}

// kill closes the listener and resets every connection.
func (f *fragile) kill() {
	_ = f.Close() // it may be closed already
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		if c, ok := c.(interface{ SetLinger(int) error }); ok {
			_ = c.SetLinger(0) // the connection may be gone
		}
		_ = c.Close()
	}
}
