package benchmarks

import (
	"fmt"
	"io"
	"net"
	"net/http"
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

// variant is a server to measure, with the kind of clients that the load process opens.
type variant struct {
	name   string
	client string
	start  func(tb testing.TB) publisher
}

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
	serve := func(t transport.Server) func(testing.TB) publisher {
		return func(tb testing.TB) publisher { return startServer(tb, t, false) }
	}
	detached := func(t transport.Server) func(testing.TB) publisher {
		return func(tb testing.TB) publisher { return startServer(tb, t, true) }
	}
	return []variant{
		{"floor", "tcp", startBareTCP},
		{"chunked", "chunked", serve(chunked.Server{})},
		{"chunked-detached", "chunked", detached(chunked.Server{})},
		{"chunked-standard", "chunked", serve(chunked.Server{DisableHijack: true})},
		{"websocket", "websocket", serve(&websocket.Server{})},
		{"websocket-detached", "websocket", detached(&websocket.Server{})},
		{"websocket-gorilla", "websocket", serve(&gorilla.Server{})},
		{"websocket-nhooyr", "websocket", serve(&nhooyr.Server{})},
		{"h2", "h2", serve(h2.Server{})},
		{"h2-detached", "h2", detached(h2.Server{})},
		{"h2-nethttp", "h2", func(tb testing.TB) publisher {
			return startServerWith(tb, h2.Server{}, false, h2.Config{NetHTTP: true})
		}},
		{"h2-detached", "h2", detached(h2.Server{})},
	}
}

// server is a watchserver over a log.
type server struct {
	writer
	addr  string
	watch *watchserver.Server
	n     int
}

func startServer(tb testing.TB, t transport.Server, detach bool) *server {
	tb.Helper()
	return startServerWith(tb, t, detach, h2.Config{})
}

func startServerWith(tb testing.TB, t transport.Server, detach bool, c h2.Config) *server {
	tb.Helper()
	s := &server{writer: writer{log: history.New(history.Options{})}}
	s.watch = &watchserver.Server{Source: s.log, Transports: []transport.Server{t}, Detach: detach}
	s.watch.Timing.Heartbeat = -1 // the clients do not answer pings
	hs := &http.Server{Handler: s.watch}
	c.Configure(hs)
	s.addr = serveOn(tb, hs)
	return s
}

func serveOn(tb testing.TB, hs *http.Server) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	go hs.Serve(l)
	tb.Cleanup(func() { hs.Close() })
	return l.Addr().String()
}

func (s *server) Addr() string { return s.addr }

func (s *server) Publish() {
	s.put(listwatch.Key{Namespace: "ns", Name: fmt.Sprint(s.n % 100)}, nil)
	s.n++
}

// bareTCP shows the least that fanout can cost: an event wakes one goroutine per
// connection, which writes the same bytes to the socket, with the same write deadlines, and
// does nothing else.
type bareTCP struct {
	addr  string
	frame []byte

	mu    sync.Mutex
	conns []chan []byte
}

func startBareTCP(tb testing.TB) publisher {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
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

func (f *bareTCP) serve(conn net.Conn) {
	defer conn.Close()
	request := make([]byte, 4)
	if _, err := io.ReadFull(conn, request); err != nil {
		return
	}
	events := make(chan []byte, 64)
	f.mu.Lock()
	f.conns = append(f.conns, events)
	f.mu.Unlock()
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

func (f *bareTCP) Addr() string { return f.addr }

func (f *bareTCP) Publish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c <- f.frame
	}
}
