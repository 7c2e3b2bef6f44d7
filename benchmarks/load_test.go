package benchmarks

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
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
	// Kind is a key of requests, "h2" for the HTTP/2 client of net/http, "frames" for a
	// frameReader, "list" for lists over HTTP/1.1, "bystander", "informer", or "own-" and the name
	// of a transport for our client. A suffix such as "+gzip" requests a compression. "pages" are
	// collections of the JavaScript client in Node.js, which can be opened again after stop.
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
	// Fields is the parameter fields of every watch.
	Fields string
	// Initial makes every watch request the initial events of all objects.
	Initial bool
	// Conflate is the parameter conflate of every watch, if it is not empty.
	Conflate string
	// Path is the path of the collection without its first slash.
	Path string
	// Collections is the number of collections. Their paths end with 0, 1 and so on. Each watch is
	// of the next one. If zero, all watches are of the same collection.
	Collections int
	// Since is the state that the clients of kind "state" have. If zero, they have none.
	Since listwatch.State
	// Copies is the directory of the copies of clients of kind "informer". With kind "pages", any
	// text makes the pages keep copies in the memory of their process.
	Copies string
	// PerNode makes every informer or page select the objects of a node of its own. Otherwise the
	// informers share the objects, so that many fit into the memory.
	PerNode bool
}

// target returns the target of the request for the watch with the given number.
func (c clients) target(number int) string {
	path := "/" + c.Path
	if c.Collections > 0 {
		path += strconv.Itoa(number % c.Collections)
	}
	return path + "?" + c.query(number)
}

// query returns the query of the watch with the given number.
func (c clients) query(number int) string {
	switch {
	case c.Since.Version != 0:
		return fmt.Sprintf("%s&resourceVersion=%d&initialEventsSince=%[2]d&initialEventsState=%s",
			initialQuery, c.Since.Version, url.QueryEscape(c.Since.ID))
	case c.Initial:
		return initialQuery
	case c.Conflate != "":
		return benchQuery + "&conflate=" + c.Conflate
	case c.Fields != "":
		return benchQuery + "&fields=" + url.QueryEscape(c.Fields)
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
	// After the last delivery:
	cpu          time.Duration // the processor time of the load process
	bytes        int64         // what all clients have read from their connections
	median, last time.Duration // until half of the clients, or all, had their whole state
}

// startLoad starts a load process with the given number of clients and returns when all of
// them have received their response headers.
func startLoad(tb testing.TB, kind clients, addr string, watchers int) *load {
	tb.Helper()
	l := prepareLoad(tb, kind, addr, watchers)
	l.open()
	return l
}

// prepareLoad starts a load process whose clients send nothing before open.
func prepareLoad(tb testing.TB, kind clients, addr string, watchers int) *load {
	tb.Helper()
	spec, err := json.Marshal(loadSpec{kind, addr, watchers})
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	if kind.Kind == "pages" {
		cmd = exec.Command("node", "pages/storm.mjs")
	}
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
	l.expect("started")
	return l
}

func (l *load) open() {
	l.Helper()
	fmt.Fprintln(l.in)
	l.expect("ready")
}

// stop makes the clients end as after SIGTERM, and returns when they have ended. Without it, they
// end as after SIGKILL.
func (l *load) stop() {
	l.Helper()
	fmt.Fprintln(l.in, -1)
	l.expect("stopped")
}

// wait blocks until every client has received the given number of further events.
func (l *load) wait(events int) { l.waitForDeliveries(events * l.watched) }

// waitForDeliveries blocks until the clients together have received n further events.
func (l *load) waitForDeliveries(n int) {
	l.delivered += n
	fmt.Fprintln(l.in, l.delivered)
	l.expect("got")
	if _, err := fmt.Fscanln(l.out, &l.cpu, &l.bytes, &l.median, &l.last); err != nil {
		l.Fatal(err)
	}
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
	if l.Clients.Kind == "bystander" {
		return l.serveBystander()
	}
	fmt.Println("started")
	fmt.Scanln()
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
		if total < 0 {
			c.stop()
			fmt.Println("stopped")
			return nil
		}
		c.wait(total)
		cpu, err := processorTime()
		if err != nil {
			return err
		}
		median, last := c.whenComplete()
		fmt.Printf("got\n%d %d %d %d\n", cpu, c.bytes.Load(), median, last)
	}
}

// counter counts the events that all clients together have received. It recognizes an event by the
// byte mark.
type counter struct {
	bytes  atomic.Int64 // read from all connections
	opened time.Time
	run    context.Context // ends informers
	cancel context.CancelFunc
	runs   sync.WaitGroup // informers

	mu       sync.Mutex
	cond     sync.Cond
	total    int
	want     int
	complete samples // the times from opened until a client had its whole state
}

func newCounter() *counter {
	c := &counter{opened: time.Now()}
	c.cond.L = &c.mu
	c.run, c.cancel = context.WithCancel(context.Background())
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

// requests holds, by kind, the headers of clients that have a connection for each watch. Clients of
// all other kinds use HTTP/2.
var requests = map[string]string{
	"tcp":       "", // not HTTP
	"chunked":   "Host: localhost\r\n",
	"websocket": "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
}

const (
	benchQuery   = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
	initialQuery = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
)

// request returns the request for the watch with the given number. The request is empty for HTTP/2.
// If the kind names a coding, as in "chunked+gzip", request also returns the header that requests
// this coding.
func (c clients) request(number int) (request, name, value string) {
	kind, coding, compressed := strings.Cut(c.Kind, "+")
	headers, ok := requests[kind]
	name, value = "Accept-Encoding", coding
	if kind == "websocket" {
		name, value = "Sec-WebSocket-Extensions", "permessage-deflate"
	}
	switch {
	case !compressed:
		name, value = "", ""
	case ok:
		headers += name + ": " + value + "\r\n"
	}
	switch {
	case !ok:
		return "", name, value
	case kind == "tcp":
		return "\r\n\r\n", "", ""
	}
	return "GET " + c.target(number) + " HTTP/1.1\r\n" + headers + "\r\n", name, value
}

// openAll opens all watches. Each call of open opens all watches of one connection.
func (l loadSpec) openAll(c *counter) error {
	request, name, value := l.Clients.request(0)
	perConn, atOnce := 1, 64
	open := func(number int) error {
		request, _, _ := l.Clients.request(number)
		return l.openRaw(request, c, c.drain)
	}
	if request == "" {
		perConn = max(1, l.Clients.Streams)
		open = func(int) error { return l.openHTTP2(name, value, c) }
	}
	switch kind, _, _ := strings.Cut(l.Clients.Kind, "+"); kind {
	case "frames":
		open = func(number int) error { return l.openFrames(number*perConn, c) }
	case "state":
		atOnce = l.Watchers
		open = func(int) error {
			return l.openRaw("GET "+l.Clients.target(0)+" HTTP/1.1\r\nHost: localhost\r\n\r\n", c, c.readState)
		}
	case "informer":
		atOnce = l.Watchers
		open = func(number int) error { return l.openInformer(number, c) }
	case "list":
		atOnce = l.Watchers
		open = func(int) error { return l.openList(name, value, c) }
	case "own-chunked", "own-h2", "own-websocket":
		open = func(int) error { return l.openOwn(strings.TrimPrefix(kind, "own-"), value, c) }
	}
	var group sync.WaitGroup
	errs := make(chan error, l.Watchers)
	slots := make(chan struct{}, atOnce)
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
func (l loadSpec) dial(protocol string, c *counter) (net.Conn, error) {
	conn, err := c.dial(context.Background(), "tcp", l.Addr)
	if err != nil || !l.Clients.TLS {
		return conn, err
	}
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}), nil
}

func (l loadSpec) openRaw(request string, c *counter, read func(io.Reader)) error {
	conn, err := l.dial("http/1.1", c)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	status, err := r.ReadString('\n')
	if strings.HasPrefix(status, "HTTP/1.1 4") || strings.HasPrefix(status, "HTTP/1.1 5") {
		return fmt.Errorf("got %q", status)
	}
	for line := status; line != "\r\n" && err == nil; {
		line, err = r.ReadString('\n')
	}
	if err != nil {
		return err
	}
	go read(r) // r may have buffered events; it reads large pieces directly from conn
	return nil
}

// openList requests a list over a connection of its own, and counts it when it is complete.
func (l loadSpec) openList(name, value string, c *counter) error {
	req, err := http.NewRequest(http.MethodGet, "http://"+l.Addr+"/"+l.Clients.Path, nil)
	if err != nil {
		return err
	}
	if name != "" {
		req.Header.Set(name, value)
	}
	t := &http.Transport{DialContext: c.dial, DisableCompression: true}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	go func() {
		defer resp.Body.Close()
		// io.Discard alone would read pieces of 8 KiB.
		discard := struct{ io.Writer }{io.Discard}
		if _, err := io.CopyBuffer(discard, resp.Body, make([]byte, 64<<10)); err == nil {
			c.addComplete()
		}
	}()
	return nil
}

// openHTTP2 opens the watches of one connection with the client of net/http.
func (l loadSpec) openHTTP2(name, value string, c *counter) error {
	t := &http.Transport{DialContext: c.dial, Protocols: new(http.Protocols), DisableCompression: true}
	scheme := "http"
	if l.Clients.TLS {
		scheme = "https"
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	t.Protocols.SetHTTP2(l.Clients.TLS)
	t.Protocols.SetUnencryptedHTTP2(!l.Clients.TLS)
	for number := range l.Clients.Streams {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
			scheme+"://"+l.Addr+l.Clients.target(number), nil)
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
