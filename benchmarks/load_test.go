package benchmarks

import (
	"bufio"
	"bytes"
	"context"
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
// their mark. The two processes exchange lines over pipes.
const loadEnv = "LISTWATCH_BENCH_LOAD" // its value is "kind addr watchers"

// mark occurs exactly once in every event that the benchmarks send, and nowhere else in a
// stream: neither in other members of the object nor in the header of a WebSocket frame. That
// header consists of the opcode, the byte 126 and the payload's length.
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
	in      io.Writer
	out     *bufio.Reader
	watched int
	sent    int
}

// startLoad starts a load process with the given number of clients and returns when all of
// them have received their response headers.
func startLoad(tb testing.TB, kind, addr string, watchers int) *load {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", loadEnv, kind, addr, watchers))
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
func (l *load) wait(events int) {
	l.sent += events
	fmt.Fprintln(l.in, l.sent*l.watched)
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
	var kind, addr string
	var watchers int
	if _, err := fmt.Sscan(spec, &kind, &addr, &watchers); err != nil {
		return err
	}
	c := newCounter()
	if err := openAll(kind, addr, watchers, c); err != nil {
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

// counter counts the events that all clients together have received. Each event contains one
// byte with the value mark.
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

// requests holds, by kind, the requests of clients that use plain TCP connections. Clients of
// all other kinds use HTTP/2.
var requests = map[string]string{
	"tcp":       "\r\n\r\n",
	"chunked":   "GET /?" + benchQuery + " HTTP/1.1\r\nHost: bench\r\n\r\n",
	"websocket": "GET /?" + benchQuery + " HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
}

const benchQuery = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

// requestOf returns the request that clients of the kind send; it is empty for HTTP/2. If the
// kind names a coding, as in "chunked+gzip", requestOf also returns the header that requests
// it.
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

func openAll(kind, addr string, watchers int, c *counter) error {
	request, name, value := requestOf(kind)
	open := func() error { return openRaw(addr, request, c) }
	if request == "" {
		open = h2Opener(addr, name, value, c)
	}
	var group sync.WaitGroup
	errs := make(chan error, watchers)
	slots := make(chan struct{}, 64)
	for range watchers {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := open(); err != nil {
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

func openRaw(addr, request string, c *counter) error {
	conn, err := net.Dial("tcp", addr)
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
	// drain reads from conn and not from r, whose buffer is empty, because the server flushes the
	// headers before it sends events.
	go c.drain(conn)
	return nil
}

// streamsPerConn is the number of HTTP/2 watches on one connection.
const streamsPerConn = 100

func h2Opener(addr, name, value string, c *counter) func() error {
	var mu sync.Mutex
	var client *http.Client
	opened := 0
	return func() error {
		mu.Lock()
		if opened%streamsPerConn == 0 {
			t := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
			t.Protocols.SetUnencryptedHTTP2(true)
			client = &http.Client{Transport: t}
		}
		opened++
		own := client
		mu.Unlock()
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr+"/?"+benchQuery, nil)
		if err != nil {
			return err
		}
		if name != "" {
			req.Header.Set(name, value)
		}
		resp, err := own.Do(req)
		if err != nil {
			return err
		}
		go c.drain(resp.Body)
		return nil
	}
}
