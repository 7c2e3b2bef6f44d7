package h2

import (
	"context"
	"net"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
)

// An http1Detector records which servers respond to the connection preface of HTTP/2 with
// HTTP/1. If such a response arrives before the request is sent, net/http only reports that
// the connection could not be established, and repeats that error for some time.
type http1Detector struct {
	http1 sync.Map // address → struct{}
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// observe returns a function that dials with dial and observes the first bytes from the server.
func (d *http1Detector) observe(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &observedConn{Conn: conn, onHTTP1: func() { d.http1.Store(addr, struct{}{}) }}, nil
	}
}

// explain returns err, the error of a dial of addr, or a clearer error if the server is
// known to use HTTP/1. err may be nil.
func (d *http1Detector) explain(addr string, err error) error {
	if err == nil {
		d.http1.Delete(addr)
		return nil
	}
	if _, ok := d.http1.Load(addr); ok && strings.Contains(err.Error(), "client conn could not be established") {
		return &listwatch.Error{
			Code: listwatch.Unsupported, Op: "dial", Message: "the server supports HTTP/1 but not HTTP/2",
		}
	}
	return err
}

// An observedConn calls onHTTP1 if the first bytes it reads start an HTTP/1 response.
type observedConn struct {
	net.Conn
	onHTTP1 func()

	// Owned by the reader.
	start []byte // the first bytes, up to the length of http1Start
}

const http1Start = "HTTP/1."

func (c *observedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if missing := len(http1Start) - len(c.start); n > 0 && missing > 0 {
		c.start = append(c.start, p[:min(n, missing)]...)
		if string(c.start) == http1Start {
			c.onHTTP1()
		}
	}
	return n, err
}
