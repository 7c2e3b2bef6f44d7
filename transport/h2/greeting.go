package h2

import (
	"context"
	"net"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
)

// greetings remembers which servers answered the preface of HTTP/2 in HTTP/1. net/http tells only where the answer comes after the
// request; where it comes before, it says that the connection could not be established, and goes on saying that for a while.
type greetings struct {
	http1 sync.Map // address → struct{}
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// watch returns dial with connections that note how their servers answer.
func (g *greetings) watch(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &greetedConn{Conn: conn, speaksHTTP1: func() { g.http1.Store(addr, struct{}{}) }}, nil
	}
}

// explain returns err, of a dial of addr, or what is known better.
func (g *greetings) explain(addr string, err error) error {
	if err == nil {
		g.http1.Delete(addr)
		return nil
	}
	if _, ok := g.http1.Load(addr); ok && strings.Contains(err.Error(), "client conn could not be established") {
		return &listwatch.Error{Code: listwatch.Unsupported, Op: "dial", Message: "the server speaks HTTP/1, want HTTP/2"}
	}
	return err
}

// A greetedConn calls speaksHTTP1 if the first bytes that it reads are those of HTTP/1.
type greetedConn struct {
	net.Conn
	speaksHTTP1 func()

	// Owned by the reader.
	greeting []byte
}

const http1Greeting = "HTTP/1."

func (c *greetedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if missing := len(http1Greeting) - len(c.greeting); n > 0 && missing > 0 {
		c.greeting = append(c.greeting, p[:min(n, missing)]...)
		if string(c.greeting) == http1Greeting {
			c.speaksHTTP1()
		}
	}
	return n, err
}
