package benchmarks

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
	"github.com/listwatch/listwatch/watchserver"
)

// variant is a server to measure, with the clients that the load process opens.
type variant struct {
	name    string
	clients clients
	start   func(tb testing.TB, l net.Listener) publisher
}

func (v variant) serve(tb testing.TB) publisher { return v.start(tb, listen(tb, v.clients.TLS)) }

// publisher is a running server.
type publisher interface {
	Addr() string
	// Publish sends one event of about 1 KiB to every watcher.
	Publish()
}

// variants returns the bare TCP server, named "floor", and a variant for each transport. A
// transport with a fast path and a standard path has a variant for each path. The handlers of
// variants named "detached" return at once.
func variants() []variant {
	serve := func(t transport.Server) func(testing.TB, net.Listener) publisher {
		return func(tb testing.TB, l net.Listener) publisher { return startServer(tb, l, t, false) }
	}
	detached := func(t transport.Server) func(testing.TB, net.Listener) publisher {
		return func(tb testing.TB, l net.Listener) publisher { return startServer(tb, l, t, true) }
	}
	kind := func(name string) clients { return clients{Kind: name} }
	return []variant{
		{"floor", kind("tcp"), startBareTCP},
		{"chunked", kind("chunked"), serve(chunked.Server{})},
		{"chunked-detached", kind("chunked"), detached(chunked.Server{})},
		{"chunked-standard", kind("chunked"), serve(chunked.Server{DisableHijack: true})},
		{"websocket", kind("websocket"), serve(&websocket.Server{})},
		{"websocket-detached", kind("websocket"), detached(&websocket.Server{})},
		{"websocket-gorilla", kind("websocket"), serve(&gorilla.Server{})},
		{"websocket-nhooyr", kind("websocket"), serve(&nhooyr.Server{})},
		{"h2", goHTTP2, serve(h2.Server{})},
		{"h2-detached", goHTTP2, detached(h2.Server{})},
		{"h2-nethttp", goHTTP2, func(tb testing.TB, l net.Listener) publisher {
			return startServerWith(tb, l, h2.Server{}, false, h2.Config{NetHTTP: true})
		}},
	}
}

// goHTTP2 is the HTTP/2 client of net/http. It refreshes a window after 4 KiB.
var goHTTP2 = clients{Kind: "h2", Streams: 100}

// byReader returns the variants that show how the cost of HTTP/2 depends on the clients: leaner
// clients, and clients with a connection for each watch.
func byReader() []variant {
	serve := func(tb testing.TB, l net.Listener) publisher { return startServer(tb, l, h2.Server{}, false) }
	return []variant{
		{"h2-frames", clients{Kind: "frames", Streams: 100, Refresh: 4 << 10}, serve},
		{"h2-frames-seldom", clients{Kind: "frames", Streams: 100, Refresh: 1 << 20}, serve},
		{"h2-alone", clients{Kind: "h2", Streams: 1}, serve},
		{"h2-alone-frames", clients{Kind: "frames", Streams: 1, Refresh: 4 << 10}, serve},
		{"h2-alone-frames-seldom", clients{Kind: "frames", Streams: 1, Refresh: 1 << 20}, serve},
	}
}

// overTLS returns the variants that are measured over TLS as well.
func overTLS() (secured []variant) {
	for _, v := range append(variants(), byReader()...) {
		switch v.name {
		case "floor", "chunked", "chunked-detached", "websocket", "websocket-detached", "h2", "h2-detached",
			"h2-frames":
			v.name += "-tls"
			v.clients.TLS = true
			secured = append(secured, v)
		}
	}
	return secured
}

// listen listens on a port of 127.0.0.1.
func listen(tb testing.TB, secure bool) net.Listener {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	if !secure {
		return l
	}
	test := httptest.NewTLSServer(nil) // has a certificate
	defer test.Close()
	return tls.NewListener(l, &tls.Config{Certificates: test.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}})
}

// server is a watchserver over a log.
type server struct {
	writer
	addr  string
	watch *watchserver.Server
	n     int
}

func startServer(tb testing.TB, l net.Listener, t transport.Server, detach bool) *server {
	return startServerWith(tb, l, t, detach, h2.Config{})
}

func startServerWith(tb testing.TB, l net.Listener, t transport.Server, detach bool, c h2.Config) *server {
	s := &server{writer: writer{log: history.New(history.Options{})}, addr: l.Addr().String()}
	s.watch = &watchserver.Server{Source: s.log, Transports: []transport.Server{t}, Detach: detach}
	s.watch.Timing.Heartbeat = -1 // the clients do not answer pings
	hs := &http.Server{Handler: s.watch}
	h2.Configure(hs, c)
	go hs.Serve(l)
	tb.Cleanup(func() { hs.Close() })
	return s
}

func (s *server) Addr() string { return s.addr }

func (s *server) Publish() {
	s.put(listwatch.Key{Namespace: "ns", Name: fmt.Sprint(s.n % 100)}, nil)
	s.n++
}

// bareTCP shows the lowest possible cost of fanout. An event wakes one goroutine per connection,
// which writes the same bytes to the socket, with the same write deadlines, and does nothing else.
type bareTCP struct {
	addr  string
	frame []byte

	mu    sync.Mutex
	conns []chan []byte
}

func startBareTCP(_ testing.TB, l net.Listener) publisher {
	o := object(listwatch.Key{Namespace: "ns", Name: "1"}, nil, 1, 1024)
	payload := fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`+"\n", o.Data)
	f := &bareTCP{addr: l.Addr().String(), frame: fmt.Appendf(nil, "%x\r\n%s\r\n", len(payload), payload)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(conn)
		}
	}()
	return f
}

func (b *bareTCP) serve(conn net.Conn) {
	defer conn.Close()
	request := make([]byte, 4)
	if _, err := io.ReadFull(conn, request); err != nil {
		return
	}
	events := make(chan []byte, 64)
	b.mu.Lock()
	b.conns = append(b.conns, events)
	b.mu.Unlock()
	conn.Write([]byte("ok\r\n\r\n"))
	var deadline time.Time
	for frame := range events {
		if now := time.Now(); deadline.Sub(now) < transport.DefaultWriteTimeout {
			deadline = now.Add(2 * transport.DefaultWriteTimeout)
			conn.SetWriteDeadline(deadline)
		}
		if _, err := conn.Write(frame); err != nil {
			return
		}
	}
}

func (b *bareTCP) Addr() string { return b.addr }

func (b *bareTCP) Publish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		c <- b.frame
	}
}
