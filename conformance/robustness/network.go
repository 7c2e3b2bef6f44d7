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

func (k *killableListener) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err == nil {
		k.mu.Lock()
		k.conns = append(k.conns, c)
		k.mu.Unlock()
	}
	return c, err
}

// kill closes the listener and resets all connections.
func (k *killableListener) kill() {
	_ = k.Close() // it may already be closed
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		if c, ok := c.(interface{ SetLinger(int) error }); ok {
			_ = c.SetLinger(0) // the connection may already be closed
		}
		_ = c.Close()
	}
}
