//go:build unix

package proxies

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// decodeTimeout limits the time until a client has an event. The next event is written only then,
// so a client that holds an event back until the next one arrives fails.
const decodeTimeout = 30 * time.Second

// A decoder is a client that prints the text of a watch as soon as it has decoded it.
type decoder struct {
	name    string
	command []string // followed by the URL; nil for a function of this process
	open    func(t *testing.T, url string) io.Reader
	socket  bool     // it uses WebSocket
	needs   []string // a command that succeeds if the libraries are installed
	proxy   map[string]string
	// optional is true if the client is not required with CI=true.
	optional bool
}

// gunzip makes nginx decompress for a client that does not accept gzip.
var gunzip = map[string]string{"FAULT": "gunzip on; proxy_set_header Accept-Encoding gzip;"}

var (
	curl = []string{"curl", "-sN", "-H", "Accept: text/event-stream"}
	node = []string{"node", "--no-warnings"}
)

// The WebSocket of Node.js needs version 22 or later.
var decoders = []decoder{
	{name: "Go", open: openGo},
	{name: "curl", command: append(curl, "--compressed")},
	{name: "curl through nginx", command: append(curl, "--compressed"), proxy: map[string]string{}},
	{name: "curl through nginx with gunzip", command: curl, proxy: gunzip},
	{name: "fetch of Node.js", command: append(node, "testdata/fetch.mjs")},
	{name: "http of Node.js", command: append(node, "testdata/http.mjs")},
	{name: "zlib of Python", command: []string{"/usr/bin/python3", "testdata/zlib_watch.py"}},
	{name: "aiohttp", command: []string{"/usr/bin/python3", "testdata/aiohttp_watch.py"}, needs: imports("aiohttp")},

	{name: "our WebSocket", open: openWebSocket, socket: true},
	{name: "our WebSocket through nginx", open: openWebSocket, socket: true, proxy: map[string]string{}},
	{name: "WebSocket of Node.js", command: append(node, "testdata/websocket.mjs"), needs: []string{"node", "-e", "WebSocket"}, socket: true, optional: true},
	{name: "WebSocket of aiohttp", command: []string{"/usr/bin/python3", "testdata/aiohttp_watch.py"}, needs: imports("aiohttp"), socket: true},
	{name: "websockets", command: []string{"/usr/bin/python3", "testdata/websockets_watch.py"}, needs: imports("websockets"), socket: true},
}

func imports(module string) []string { return []string{"/usr/bin/python3", "-c", "import " + module} }

// openGo lets net/http request gzip and decompress it.
func openGo(t *testing.T, url string) io.Reader {
	response := get(t, url, "Accept", "text/event-stream")
	if !response.Uncompressed {
		t.Error("got an uncompressed response")
	}
	return response.Body
}

func openPlain(t *testing.T, url string) io.Reader {
	return get(t, url, "Accept-Encoding", "identity").Body
}

func get(t *testing.T, url, header, value string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(header, value)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func openWebSocket(t *testing.T, address string) io.Reader {
	u, err := url.Parse(strings.Replace(address, "ws:", "http:", 1))
	if err != nil {
		t.Fatal(err)
	}
	receiver, err := (&websocket.Client{}).Dial(t.Context(), &transport.Request{URL: u, Codings: transport.Codings()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { receiver.Close() })
	r, w := io.Pipe()
	go func() { // ends with the watch
		for {
			e, err := receiver.Receive()
			if err != nil {
				w.CloseWithError(err)
				return
			}
			fmt.Fprintf(w, `{"type":"%s","object":%s}`+"\n", e.Type, e.Object)
		}
	}()
	return r
}

// A reading is the output of a decoder: the lines with its events, and private lines, which no
// other watch receives.
type reading struct {
	*testing.T
	name            string
	events, private chan string
}

// read splits the output of a decoder until its end.
func (r *reading) read(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			close(r.events)
			return
		}
		line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		switch {
		case line == ":" || strings.HasPrefix(line, `{"type":"BOOKMARK"`):
			select {
			case r.private <- line:
			default: // the test does not wait for one
			}
		case strings.HasPrefix(line, "{"):
			r.events <- line
		}
	}
}

func (r *reading) want(line string) {
	r.Helper()
	select {
	case got, ok := <-r.events:
		if !ok {
			r.Fatalf("%s: the watch ended, want %.300q", r.name, line)
		}
		if got != line {
			r.Fatalf("%s: got %.300q, want %.300q", r.name, got, line)
		}
	case <-time.After(decodeTimeout):
		r.Fatalf("%s: got nothing within %v, want %.300q", r.name, decodeTimeout, line)
	}
}

// wantPrivate waits for a heartbeat or a bookmark since the last call.
func (r *reading) wantPrivate() {
	r.Helper()
	select {
	case <-r.private:
	case <-time.After(decodeTimeout):
		r.Fatalf("%s: got neither heartbeat nor bookmark within %v", r.name, decodeTimeout)
	}
}

func (d decoder) start(t *testing.T, addr, query string) *reading {
	t.Helper()
	if d.proxy != nil {
		addr = nginx.start(t, addr, d.proxy)
	}
	url := "http://" + addr + "/things?" + query
	if d.socket {
		url = "ws://" + addr + "/things?" + query + "&allowWatchBookmarks=1"
	}
	r := &reading{T: t, name: d.name, events: make(chan string, 100), private: make(chan string, 1)}
	output := io.Reader(nil)
	if d.open != nil {
		output = d.open(t, url)
	} else {
		cmd := exec.CommandContext(t.Context(), d.command[0], append(d.command[1:], url)...)
		cmd.Stderr = t.Output()
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() }) // it is killed
		output = stdout
	}
	go r.read(output) // ends with the watch
	return r
}

// installed reports whether d can run. With CI=true it must.
func (d decoder) installed(t *testing.T) bool {
	var err error
	if d.command != nil {
		_, err = exec.LookPath(d.command[0])
	}
	if err == nil && d.proxy != nil {
		_, err = exec.LookPath(nginx.command)
	}
	if err == nil && d.needs != nil {
		err = exec.Command(d.needs[0], d.needs[1:]...).Run()
	}
	if err != nil && os.Getenv("CI") == "true" && !d.optional {
		t.Errorf("%s is not installed; with CI=true it is required", d.name)
	}
	return err == nil
}

// The clients join one after the other, in the middle of segments, and receive heartbeats or
// bookmarks in between. Each must print each event before the next one is written.
func TestDecodersReadSharedHistory(t *testing.T) {
	c, server, addr := startSharing(t)
	first, err := c.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	query := fmt.Sprintf("watch=1&resourceVersion=%d", first.Version)
	plain := (decoder{name: "uncompressed", open: openPlain}).start(t, addr, query)
	var readings []*reading
	var past []string
	for i := range 9*len(decoders) + 64 {
		if d := i / 9; i%9 == 4 && d < len(decoders) && decoders[d].installed(t) {
			r := decoders[d].start(t, addr, query)
			for _, line := range past {
				r.want(line)
			}
			readings = append(readings, r)
		}
		past = append(past, write(t, c, i, plain))
		for _, r := range readings {
			r.want(past[i])
		}
		if i%25 == 24 {
			for _, r := range readings {
				r.wantPrivate()
			}
		}
	}
	checkBytes(t, server.Watches())
}

// startSharing serves a collection whose watches share history.
func startSharing(t *testing.T) (c *store.Collection, server *watchserver.Server, addr string) {
	c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{APIVersion: "v1", Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	server = &watchserver.Server{
		Source: c, SharedCompression: watchserver.ShareAlways,
		Timing: watchserver.Timing{Heartbeat: 500 * time.Millisecond, Bookmark: 100 * time.Millisecond},
	}
	mux := http.NewServeMux()
	mux.Handle("/things", server)
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return c, server, s.Listener.Addr().String()
}

// checkBytes verifies that history was shared: in each compression a watch has received fewer bytes
// than separately compressed events take.
func checkBytes(t *testing.T, watches []watchserver.Watch) {
	t.Helper()
	fewest := map[string]int64{}
	for _, w := range watches {
		perEvent := w.Bytes / max(w.Events, 1)
		t.Logf("%-9s %-18s %3d events, %4d bytes each", w.Transport, w.Compression, w.Events, perEvent)
		if least, ok := fewest[w.Compression]; !ok || perEvent < least {
			fewest[w.Compression] = perEvent
		}
	}
	for _, compression := range []string{"gzip", "permessage-deflate"} {
		if fewest[compression] >= incompressible {
			t.Errorf("%s: got %d bytes an event, want fewer than %d", compression, fewest[compression], incompressible)
		}
	}
}

// incompressible is the number of random bytes in each object, which take that many bytes if an
// event is compressed on its own.
const incompressible = 1024

// write writes an object and returns its event in the text of an uncompressed watch.
func write(t *testing.T, c *store.Collection, i int, plain *reading) string {
	t.Helper()
	text := ""
	for part := range incompressible / sha256.Size {
		text += fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i % 5), byte(part)}))
	}
	data := fmt.Sprintf(`{"metadata":{"name":"thing-%d"},"spec":{"text":%q}}`, i, text)
	if _, err := c.Create(t.Context(), []byte(data)); err != nil {
		t.Fatal(err)
	}
	return <-plain.events
}
