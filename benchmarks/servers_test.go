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
	"github.com/listwatch/listwatch/watchserver"
)

// A contestant is a server under measurement: what serves, and which clients the load process opens.
type contestant struct {
	name   string
	client string
	start  func(tb testing.TB) publisher
}

// A publisher is a running server.
type publisher interface {
	Addr() string
	// Publish sends one event of about 1 KiB to every watcher.
	Publish()
}

// contestants are the floor first, then every transport; each on its lean path and on the standard one, where there are two.
func contestants() []contestant {
	serve := func(t transport.Server) func(testing.TB) publisher {
		return func(tb testing.TB) publisher { return startServer(tb, t) }
	}
	return []contestant{
		{"floor", "tcp", startFloor},
		{"chunked", "chunked", serve(chunked.Server{})},
		{"chunked-standard", "chunked", serve(chunked.Server{DisableHijack: true})},
		{"websocket-gorilla", "websocket", serve(&websocket.Server{})},
		{"websocket-nhooyr", "websocket", serve(&websocket.Server{Backend: websocket.Nhooyr})},
		{"h2", "h2", serve(h2.Server{})},
	}
}

// A server is a watchserver over a log.
type server struct {
	writer
	addr  string
	watch *watchserver.Server
	n     int
}

func startServer(tb testing.TB, t transport.Server) *server {
	tb.Helper()
	s := &server{writer: writer{log: history.New(history.Options{})}}
	s.watch = &watchserver.Server{Source: s.log, Transports: []transport.Server{t}}
	s.watch.Timing.Heartbeat = -1 // the load's clients don't answer pings
	hs := &http.Server{Handler: s.watch}
	h2.Configure(hs, transport.Options{})
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

// A floor is the physical limit: a goroutine for each connection, which an event wakes and which writes the same bytes to the
// socket, under the same policy of deadlines, and does nothing else.
type floor struct {
	addr  string
	frame []byte

	mu    sync.Mutex
	conns []chan []byte
}

func startFloor(tb testing.TB) publisher {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	o := object(listwatch.Key{Namespace: "ns", Name: "1"}, nil, 1, 1024)
	payload := fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`+"\n", o.Data)
	f := &floor{addr: l.Addr().String(), frame: fmt.Appendf(nil, "%x\r\n%s\r\n", len(payload), payload)}
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

func (f *floor) serve(conn net.Conn) {
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

func (f *floor) Addr() string { return f.addr }

func (f *floor) Publish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c <- f.frame
	}
}
