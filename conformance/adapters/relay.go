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
)

// A relay carries the connections of a client in another process over the network of a case, which watches them, cuts them and drips them.
type relay struct {
	listener net.Listener
	to       string
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	done     sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	conns  []net.Conn
	closed bool
}

// networkOf returns the network of one of our clients.
func networkOf(c transport.Client) transport.Network {
	switch c := c.(type) {
	case *chunked.Client:
		return c.Network
	case *h2.Client:
		return c.Network
	case *websocket.Client:
		return c.Network
	}
	return transport.Network{}
}

// newRelay listens for a client that is to reach u over n, and returns what u is to the client.
func newRelay(n transport.Network, u *url.URL) (*relay, *url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	r := &relay{listener: l, to: u.Host, dial: n.Dial}
	if r.dial == nil {
		r.dial = new(net.Dialer).DialContext
	}
	r.done.Go(r.accept)
	here := *u
	here.Host = l.Addr().String()
	return r, &here, nil
}

func (r *relay) accept() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		if !r.keep(near) {
			return
		}
		r.done.Go(func() { r.carry(near) })
	}
}

// keep has c closed with the relay; false: that is over.
func (r *relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		c.Close()
		return false
	}
	r.conns = append(r.conns, c)
	return true
}

func (r *relay) carry(near net.Conn) {
	far, err := r.dial(context.Background(), "tcp", r.to)
	if err != nil {
		reset(near)
		return
	}
	if !r.keep(far) {
		return
	}
	r.done.Go(func() {
		pass(far, near)
	})
	pass(near, far)
}

// pass carries what from brings to the other side, and how it ends: an end as an end, a break as a break.
func pass(to, from net.Conn) {
	_, err := io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
	if err != nil {
		reset(to)
		reset(from)
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other side may have gone
		return
	}
	to.Close()
}

// reset breaks c off.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

func (r *relay) close() error {
	r.mu.Lock()
	r.closed = true
	conns := r.conns
	r.mu.Unlock()
	errs := []error{r.listener.Close()}
	for _, c := range conns {
		c.Close()
	}
	r.done.Wait()
	return errors.Join(errs...)
}
