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

// The clients live in a process of their own, so that what the benchmark reads of its own process is the server's CPU. The
// child opens connections, throws away what comes and counts one mark for each event; parent and child talk in lines.
const loadEnv = "LISTWATCH_BENCH_LOAD" // "kind addr watchers"

// mark stands once in every event that the benchmarks send, and nowhere else in a stream: neither in another object member nor
// in the header of a WebSocket frame, which holds the byte 126 and the payload's length.
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

// A load is the parent's end of a child with clients.
type load struct {
	testing.TB
	in      io.Writer
	out     *bufio.Reader
	watched int
	sent    int
}

// startLoad starts a child with watchers clients of a kind, and returns when all have their response headers.
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

// wait returns when every client has got events more events.
func (l *load) wait(events int) {
	l.sent += events
	fmt.Fprintln(l.in, l.sent*l.watched)
	l.expect("got")
}

func (l *load) expect(word string) {
	l.Helper()
	if line, err := l.out.ReadString('\n'); err != nil || strings.TrimSpace(line) != word {
		l.Fatalf("the load process said %q, %v; want %q", line, err, word)
	}
}

// serveLoad is the child.
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
			return nil // the parent is done
		}
		c.wait(total)
		fmt.Println("got")
	}
}

// A counter counts marks.
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

// requests are what the raw clients send. Kinds that are not here speak HTTP/2.
var requests = map[string]string{
	"tcp":       "\r\n\r\n",
	"chunked":   "GET /?" + benchQuery + " HTTP/1.1\r\nHost: bench\r\n\r\n",
	"websocket": "GET /?" + benchQuery + " HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
}

const benchQuery = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

// requestOf returns what a raw client of a kind sends, and the header by which it asks for compression, where the kind says that as
// "chunked+gzip".
func requestOf(kind string) (request, name, value string) {
	kind, coding, asks := strings.Cut(kind, "+")
	request, name, value = requests[kind], "Accept-Encoding", coding
	if kind == "websocket" {
		name, value = "Sec-WebSocket-Extensions", "permessage-deflate"
	}
	if !asks {
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
	go c.drain(conn) // nothing is in r: the headers are flushed alone
	return nil
}

// streamsPerConn is how many HTTP/2 watches share a connection.
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
