// Package memnet is an in-memory network for tests. Its connections are full duplex and
// buffered, support deadlines and half close, and distinguish an end of stream from a
// reset. They block only in ways that testing/synctest treats as durably blocked, so
// servers and clients can run in a bubble with fake time.
//
// Start with [Listen]. [Pipe] returns a single connection.
package memnet

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// DefaultBuffer is the number of unread bytes that each direction of a connection can hold. It
// is large enough for both ends to send a TLS close_notify at the same time, and small enough
// for a test to fill.
const DefaultBuffer = 64 << 10

// A Listener is the server's end of the network. It is safe for concurrent use.
type Listener struct {
	// Buffer is the number of unread bytes that each direction of a new connection can hold. If
	// it is zero or negative, [DefaultBuffer] is used. Set it before the first Dial.
	Buffer int

	addr    addr
	backlog chan *Conn
	closed  chan struct{}
	once    sync.Once
}

var _ net.Listener = (*Listener)(nil)

// backlog is the maximum number of connections that wait to be accepted. Dial blocks when
// it is reached.
const backlog = 128

// Listen returns a Listener whose address is unique in this process.
func Listen() *Listener {
	return &Listener{addr: nextAddr(), backlog: make(chan *Conn, backlog), closed: make(chan struct{})}
}

// Dial connects to l. It ignores the address, so that it can be used as
// http.Transport.DialContext. It blocks while 128 connections wait to be accepted, and
// returns ECONNREFUSED after l is closed.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := l.DialConn(ctx)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// DialConn is like Dial but returns the concrete type, for tests that reset or stall the
// connection.
func (l *Listener) DialConn(ctx context.Context) (*Conn, error) {
	select {
	case <-l.closed:
		return nil, l.refused(syscall.ECONNREFUSED)
	default:
	}
	client, server := pipe(nextAddr(), l.addr, l.Buffer)
	select {
	case l.backlog <- server:
		select {
		case <-l.closed:
			l.Close() // the first Close may not have found this connection
		default:
		}
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

// Accept returns the next connection, which is a [*Conn]. After Close it returns
// [net.ErrClosed].
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

// Close stops listening and resets the connections that wait to be accepted. Accepted
// connections stay open.
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

// Addr returns an address of the form 127.0.0.1:port, so that certificates for 127.0.0.1 are
// valid for it.
func (l *Listener) Addr() net.Addr { return l.addr }

// An addr is the port of an address that prints as 127.0.0.1:port.
type addr uint64

var lastPort atomic.Uint64

func nextAddr() addr { return addr(1024 + lastPort.Add(1)) }

func (a addr) Network() string { return "mem" }
func (a addr) String() string  { return "127.0.0.1:" + strconv.FormatUint(uint64(a), 10) }
