package adapters

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
)

// A tcpForwarder forwards the connections of a client in another process to the network of
// a case, where the case can observe, cut and slow them down.
type tcpForwarder struct {
	listener net.Listener
	to       string
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	done     sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	conns  []net.Conn
	closed bool
}

// networkOf returns the network that one of this module's transport clients uses.
func networkOf(c transport.Client) transport.Network {
	switch c := c.(type) {
	case *chunked.Client:
		return c.Network
	case *h2.Client:
		return c.Network
	case *websocket.Client:
		return c.Network
	case *gorilla.Client:
		return c.Network
	case *nhooyr.Client:
		return c.Network
	}
	return transport.Network{}
}

// newForwarder listens for the client under test and forwards its connections to u over n.
// It returns the URL for the client.
func newForwarder(n transport.Network, u *url.URL) (*tcpForwarder, *url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	r := &tcpForwarder{listener: l, to: u.Host, dial: n.Dial}
	if r.dial == nil {
		r.dial = new(net.Dialer).DialContext
	}
	r.done.Go(r.accept)
	here := *u
	here.Host = l.Addr().String()
	return r, &here, nil
}

func (t *tcpForwarder) accept() {
	for {
		near, err := t.listener.Accept()
		if err != nil {
			return
		}
		if !t.track(near) {
			return
		}
		t.done.Go(func() { t.forward(near) })
	}
}

// track registers c, so that it is closed with the forwarder. It returns false if the
// forwarder is already closed.
func (t *tcpForwarder) track(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		c.Close()
		return false
	}
	t.conns = append(t.conns, c)
	return true
}

func (t *tcpForwarder) forward(near net.Conn) {
	far, err := t.dial(context.Background(), "tcp", t.to)
	if err != nil {
		reset(near)
		return
	}
	if !t.track(far) {
		return
	}
	t.done.Go(func() {
		copyHalf(far, near)
	})
	copyHalf(near, far)
}

// copyHalf copies the bytes of one direction of a connection, and then passes the clean end
// or the reset on to the other side.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
	if err != nil {
		reset(to)
		reset(from)
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other side may already be closed
		return
	}
	to.Close()
}

// reset closes c with a TCP reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

func (t *tcpForwarder) close() error {
	t.mu.Lock()
	t.closed = true
	conns := t.conns
	t.mu.Unlock()
	errs := []error{t.listener.Close()}
	for _, c := range conns {
		c.Close()
	}
	t.done.Wait()
	return errors.Join(errs...)
}
