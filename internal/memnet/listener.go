// Package memnet is a network in memory for tests. Its connections are full duplex and buffered, have deadlines and half close,
// tell an end from a reset, and block in ways that testing/synctest knows, so that servers and clients run in a bubble with a
// clock of its own.
//
// Start at [Listen]; [Pipe] is a single connection.
package memnet

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// DefaultBuffer is how many bytes a direction of a connection holds that the reader has not taken: enough for two TLS ends to
// say goodbye at the same time, and little enough for a test to fill.
const DefaultBuffer = 64 << 10

// A Listener is a server's end of the network. Safe for concurrent use.
type Listener struct {
	// Buffer is how many bytes a direction of a new connection holds; zero or negative: [DefaultBuffer]. Set it before the
	// first Dial.
	Buffer int

	addr    addr
	backlog chan *Conn
	closed  chan struct{}
	once    sync.Once
}

var _ net.Listener = (*Listener)(nil)

// backlog is how many connections wait to be accepted before Dial blocks.
const backlog = 128

// Listen returns a Listener with an address that no other has in this process.
func Listen() *Listener {
	return &Listener{addr: nextAddr(), backlog: make(chan *Conn, backlog), closed: make(chan struct{})}
}

// Dial connects to l, whatever the address says, so that it fits http.Transport.DialContext. It waits while too many connections
// are not accepted yet; when l is closed the connection is refused.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := l.DialConn(ctx)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// DialConn is Dial with the concrete type, for tests that reset or stall the connection.
func (l *Listener) DialConn(ctx context.Context) (*Conn, error) {
	select {
	case <-l.closed:
		return nil, l.refused(syscall.ECONNREFUSED)
	default:
	}
	client, server := pipe(nextAddr(), l.addr, l.Buffer)
	select {
	case l.backlog <- server:
	case <-l.closed:
		return nil, l.refused(syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, l.refused(ctx.Err())
	}
	return client, nil
}

func (l *Listener) refused(err error) error {
	return &net.OpError{Op: "dial", Net: l.addr.Network(), Addr: l.addr, Err: err}
}

// Accept returns the next connection; the error after Close is [net.ErrClosed]. The connection is a [*Conn].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
	default:
		select {
		case c := <-l.backlog:
			return c, nil
		case <-l.closed:
		}
	}
	return nil, &net.OpError{Op: "accept", Net: l.addr.Network(), Addr: l.addr, Err: net.ErrClosed}
}

// Close stops listening. Connections that were accepted live on, those that were not are reset.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	for {
		select {
		case c := <-l.backlog:
			c.Reset()
		default:
			return nil
		}
	}
}

// Addr returns the address, which looks like one of 127.0.0.1, so that certificates for that fit.
func (l *Listener) Addr() net.Addr { return l.addr }

// An addr is a port of 127.0.0.1 as far as its text goes.
type addr uint64

var lastPort atomic.Uint64

func nextAddr() addr { return addr(1024 + lastPort.Add(1)) }

func (a addr) Network() string { return "mem" }
func (a addr) String() string  { return "127.0.0.1:" + strconv.FormatUint(uint64(a), 10) }
