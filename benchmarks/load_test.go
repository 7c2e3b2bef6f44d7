package benchmarks

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// loadEnv is the environment variable that makes this program a load process, which holds the
// clients. They run in a separate process, so that the benchmark's process uses CPU time only for
// the server. The load process opens connections, discards the received bytes, and counts events by
// the byte mark, which each event contains once. The two processes exchange lines over pipes.
const loadEnv = "LISTWATCH_BENCH_LOAD" // its value is a loadSpec in JSON

type loadSpec struct {
	Clients  clients
	Addr     string
	Watchers int
}

// clients describes the clients of a load process. Its fields are exported for encoding.
type clients struct {
	// Kind is a key of requests, "h2" for the HTTP/2 client of net/http, or "frames" for a
	// frameReader. A suffix such as "+gzip" requests a compression.
	Kind string
	TLS  bool
	// Streams is the number of HTTP/2 watches on one connection.
	Streams int
	// Refresh is the number of bytes after which a reader of kind "frames" refreshes a window.
	Refresh int
	// Tunnels makes readers of kind "frames" open WebSockets over HTTP/2.
	Tunnels bool
	// Quiet is for readers of kind "frames". Every Quiet-th watch selects a namespace of its own
	// ("n-0", "n-1" and so on), and all other watches select the namespace "quiet". If Quiet is
	// zero, every watch covers all namespaces.
	Quiet int
}

// query returns the query of the watch with the given number.
func (c clients) query(number int) string {
	switch {
	case c.Quiet == 0:
		return benchQuery
	case number%c.Quiet == 0:
		return fmt.Sprintf("%s&fieldSelector=metadata.namespace%%3Dn-%d", benchQuery, number/c.Quiet)
	}
	return benchQuery + "&fieldSelector=metadata.namespace%3Dquiet"
}

// mark occurs exactly once in every event that the benchmarks send, and nowhere else in a
// stream: neither in other members of the object nor in the header of a WebSocket frame, which
// consists of the opcode, the byte 126 and the payload's length.
const mark = '!'

func TestMain(m *testing.M) {
	if spec := os.Getenv(loadEnv); spec != "" {
		if err := serveLoad(spec); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// load controls a load process.
type load struct {
	testing.TB
	in        io.Writer
	out       *bufio.Reader
	watched   int
	delivered int
}

// startLoad starts a load process with the given number of clients and returns when all of
// them have received their response headers.
func startLoad(tb testing.TB, kind clients, addr string, watchers int) *load {
	tb.Helper()
	spec, err := json.Marshal(loadSpec{kind, addr, watchers})
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), loadEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	l := &load{TB: tb, in: in, out: bufio.NewReader(out), watched: watchers}
	l.expect("ready")
	return l
}

// wait blocks until every client has received the given number of further events.
func (l *load) wait(events int) { l.waitForDeliveries(events * l.watched) }

// waitForDeliveries blocks until the clients together have received n further events.
func (l *load) waitForDeliveries(n int) {
	l.delivered += n
	fmt.Fprintln(l.in, l.delivered)
	l.expect("got")
}

func (l *load) expect(word string) {
	l.Helper()
	if line, err := l.out.ReadString('\n'); err != nil || strings.TrimSpace(line) != word {
		l.Fatalf("the load process wrote %q, error %v; want %q", line, err, word)
	}
}

// serveLoad is the main function of a load process.
func serveLoad(spec string) error {
	var l loadSpec
	if err := json.Unmarshal([]byte(spec), &l); err != nil {
		return err
	}
	c := newCounter()
	if err := l.openAll(c); err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		var total int
		if _, err := fmt.Scan(&total); err != nil {
			return nil // the parent has closed the pipe
		}
		c.wait(total)
		fmt.Println("got")
	}
}

// counter counts the events that all clients together have received. It recognizes an event by the
// byte mark.
type counter struct {
	mu    sync.Mutex
	cond  sync.Cond
	total int
	want  int
}

func newCounter() *counter {
	c := &counter{}
	c.cond.L = &c.mu
	return c
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total += n; c.total >= c.want {
		c.cond.Signal()
	}
}

func (c *counter) wait(total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = total
	for c.total < total {
		c.cond.Wait()
	}
}

func (c *counter) drain(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if marks := bytes.Count(buf[:n], []byte{mark}); marks > 0 {
			c.add(marks)
		}
		if err != nil {
			return
		}
	}
}

// requests holds, by kind, the requests of clients that have a connection for each watch. Clients
// of all other kinds use HTTP/2.
var requests = map[string]string{
	"tcp":       "\r\n\r\n",
	"chunked":   "GET /?" + benchQuery + " HTTP/1.1\r\nHost: bench\r\n\r\n",
	"websocket": "GET /?" + benchQuery + " HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
}

const benchQuery = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

// requestOf returns the request that clients of the kind send. The request is empty for HTTP/2. If
// the kind names a coding, as in "chunked+gzip", requestOf also returns the header that requests
// this coding.
func requestOf(kind string) (request, name, value string) {
	kind, coding, compressed := strings.Cut(kind, "+")
	request, name, value = requests[kind], "Accept-Encoding", coding
	if kind == "websocket" {
		name, value = "Sec-WebSocket-Extensions", "permessage-deflate"
	}
	if !compressed {
		return request, "", ""
	}
	if request != "" {
		request = strings.TrimSuffix(request, "\r\n") + name + ": " + value + "\r\n\r\n"
	}
	return request, name, value
}

// openAll opens all watches. Each call of open opens all watches of one connection.
func (l loadSpec) openAll(c *counter) error {
	request, name, value := requestOf(l.Clients.Kind)
	perConn := 1
	open := func(int) error { return l.openRaw(request, c) }
	if request == "" {
		perConn = l.Clients.Streams
		open = func(int) error { return l.openHTTP2(name, value, c) }
		if l.Clients.Kind == "frames" {
			open = func(number int) error { return l.openFrames(number*perConn, c) }
		}
	}
	var group sync.WaitGroup
	errs := make(chan error, l.Watchers)
	slots := make(chan struct{}, 64)
	for number := range l.Watchers / perConn {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := open(number); err != nil {
				errs <- err
			}
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// dial connects to the server. Over TLS, it offers only the given protocol by ALPN.
func (l loadSpec) dial(protocol string) (net.Conn, error) {
	conn, err := net.Dial("tcp", l.Addr)
	if err != nil || !l.Clients.TLS {
		return conn, err
	}
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}), nil
}

func (l loadSpec) openRaw(request string, c *counter) error {
	conn, err := l.dial("http/1.1")
	if err != nil {
		return err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if line == "\r\n" {
			break
		}
	}
	// drain can read from conn instead of r. The buffer of r is empty, because the server flushes
	// the headers before it sends events.
	go c.drain(conn)
	return nil
}

// openHTTP2 opens the watches of one connection with the client of net/http.
func (l loadSpec) openHTTP2(name, value string, c *counter) error {
	t := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	scheme := "http"
	if l.Clients.TLS {
		scheme = "https"
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	t.Protocols.SetHTTP2(l.Clients.TLS)
	t.Protocols.SetUnencryptedHTTP2(!l.Clients.TLS)
	for range l.Clients.Streams {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, scheme+"://"+l.Addr+"/?"+benchQuery, nil)
		if err != nil {
			return err
		}
		if name != "" {
			req.Header.Set(name, value)
		}
		resp, err := t.RoundTrip(req)
		if err != nil {
			return err
		}
		go c.drain(resp.Body)
	}
	return nil
}
