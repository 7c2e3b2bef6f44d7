package conformance_test

import (
	"context"
	"io"
	"math"
	"net"
	"sync/atomic"
	"syscall"
)

// A cutter dials connections that break after a number of bytes, possibly in the middle of
// a message.
type cutter struct {
	after int  // the number of bytes; zero means that connections never break
	reset bool // break with a TCP reset instead of a close

	fired     atomic.Bool
	bytesRead atomic.Int64 // bytes read over all connections
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	left := c.after
	if left == 0 {
		left = math.MaxInt
	}
	return &cutConn{Conn: conn, cutter: c, left: left}, nil
}

type cutConn struct {
	net.Conn
	cutter *cutter
	left   int // bytes until the cut; accessed only by Read
}

func (c *cutConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, c.cut()
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	c.cutter.bytesRead.Add(int64(n))
	return n, err
}

func (c *cutConn) cut() error {
	c.cutter.fired.Store(true)
	if !c.cutter.reset {
		c.Close()
		return io.EOF
	}
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the server sees a reset, too
	}
	c.Close()
	return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}
