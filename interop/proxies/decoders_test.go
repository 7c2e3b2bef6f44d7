//go:build unix

package proxies

//lint:file-ignore SA1019 see libraries_test.go

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	nhooyr "nhooyr.io/websocket"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/nodetest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// decodeTimeout limits the time until a client has an event. The test writes the next event only
// after that, so a client that holds an event back until the next one arrives fails. Only failing
// tests wait that long.
const decodeTimeout = 5 * time.Minute

// A decoder is a client that decodes a watch and prints each part of the text as soon as possible.
type decoder struct {
	name    string
	command []string // the command that runs the client, without the URL; nil if open is set
	open    func(t *testing.T, url string) io.Reader
	socket  bool     // whether the client uses WebSocket
	needs   []string // a command that succeeds if the libraries are installed
	proxy   map[string]string
	// optional is true if the client is not required with CI=true.
	optional bool
	// hidesHeartbeats is true if the client receives heartbeats, but does not print them.
	hidesHeartbeats bool
}

// gunzip makes nginx decompress for a client that does not accept gzip.
var gunzip = map[string]string{"FAULT": "gunzip on; proxy_set_header Accept-Encoding gzip;"}

// nodeDir holds the scripts for Node.js, and the packages that npm installs for them.
const nodeDir = "testdata/node/"

var (
	curl = []string{"curl", "-sN", "-H", "Accept: text/event-stream"}
	// Before version 22 Node.js has a WebSocket only with this flag.
	node = []string{"node", "--no-warnings", "--experimental-websocket"}
)

var decoders = []decoder{
	{name: "Go", open: openGo},
	{name: "our HTTP/1.1", open: openOurs(&chunked.Client{}), hidesHeartbeats: true},
	{name: "our HTTP/2", open: openOurs(&h2.Client{}), hidesHeartbeats: true},
	{name: "curl", command: with(curl, "--compressed")},
	{name: "curl over HTTP/2", command: with(curl, "--compressed", "--http2-prior-knowledge")},
	{name: "curl through nginx", command: with(curl, "--compressed"), proxy: map[string]string{}},
	{name: "curl through nginx with gunzip", command: curl, proxy: gunzip},
	{name: "fetch of Node.js", command: with(node, nodeDir+"fetch.mjs")},
	{name: "http of Node.js", command: with(node, nodeDir+"http.mjs")},
	python("zlib", "zlib_watch.py"),
	python("gzip", "gzipfile_watch.py"),
	python("urllib3", "urllib3_watch.py"),
	python("requests", "requests_watch.py"),
	python("aiohttp", "aiohttp_watch.py"),
	{name: "Chromium", open: openChromium},

	{name: "our WebSocket", open: openOurs(&websocket.Client{}), socket: true},
	{
		name: "our WebSocket through nginx", open: openOurs(&websocket.Client{}), socket: true,
		proxy: map[string]string{},
	},
	{name: "coder", open: openCoder(coder.CompressionContextTakeover), socket: true},
	{name: "coder without context", open: openCoder(coder.CompressionNoContextTakeover), socket: true},
	{name: "nhooyr", open: openNhooyr(nhooyr.CompressionContextTakeover), socket: true},
	{name: "nhooyr without context", open: openNhooyr(nhooyr.CompressionNoContextTakeover), socket: true},
	{name: "gorilla, always without context", open: openGorilla, socket: true},
	{
		name: "WebSocket of Node.js", command: with(node, nodeDir+"websocket.mjs"), socket: true,
		needs: with(node, "-e", "WebSocket"), optional: true,
	},
	{name: "WebSocket of ws", command: with(node, nodeDir+"websocket.mjs", "ws"), socket: true, needs: imports("ws")},
	{
		name: "WebSocket of undici", command: with(node, nodeDir+"websocket.mjs", "undici"), socket: true,
		needs: imports("undici"), optional: true, // undici needs Node.js 20.18.1
	},
	asSocket(python("aiohttp", "aiohttp_watch.py")),
	asSocket(python("websockets", "websockets_watch.py")),
}

// with returns a command line: the elements of command, followed by the arguments.
func with(command []string, arguments ...string) []string { return slices.Concat(command, arguments) }

// python returns a decoder that runs a script of testdata. The script needs the given module.
func python(module, script string) decoder {
	const python = "/usr/bin/python3"
	return decoder{
		name: module, command: []string{python, "testdata/" + script},
		needs: []string{python, "-c", "import " + module},
	}
}

// asSocket returns a variant of d that watches over WebSocket.
func asSocket(d decoder) decoder {
	d.name, d.socket = "WebSocket of "+d.name, true
	return d
}

// imports returns a command that imports a package of npm.
func imports(name string) []string {
	return with(node, "-e", "require('./"+nodeDir+"node_modules/"+name+"')")
}

// openGo lets net/http request gzip and decompress it.
func openGo(t *testing.T, url string) io.Reader {
	response := testkit.Get(t, url, "Accept", "text/event-stream")
	if !response.Uncompressed {
		t.Error("got an uncompressed response")
	}
	return response.Body
}

func openPlain(t *testing.T, url string) io.Reader {
	return testkit.Get(t, url, "Accept-Encoding", "identity").Body
}

// A reading is the output of a decoder: the lines with its events, and private lines (heartbeats
// and bookmarks), which no other watch receives.
type reading struct {
	*testing.T
	decoder
	events, private chan string
}

// read sends the lines of a decoder's output to r.events or r.private, until the output ends.
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
			default: // drop the line, because wantPrivate needs only one
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

// wantPrivate waits for a heartbeat or a bookmark, unless one has arrived since the last call.
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
		url = "ws://" + addr + "/sockets?" + query + "&allowWatchBookmarks=1"
	}
	r := &reading{T: t, decoder: d, events: make(chan string, 100), private: make(chan string, 1)}
	output := io.Reader(nil)
	if d.open != nil {
		output = d.open(t, url)
	} else {
		cmd := exec.CommandContext(t.Context(), d.command[0], with(d.command[1:], url)...)
		cmd.Stderr = t.Output()
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() }) // the error is that the process was killed
		output = stdout
	}
	go r.read(output) // ends with the watch
	return r
}

// installed reports whether d can run. With CI=true, it fails the test if d cannot run, unless d is
// optional.
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
	if err := nodetest.Install(nodeDir); err != nil {
		t.Log(err) // the decoders that need a package of npm are not installed
	}
	s := startSharing(t, watchserver.ShareAlways)
	first, err := s.things.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	query := fmt.Sprintf("watch=1&resourceVersion=%d", first.Version)
	plain := (decoder{name: "uncompressed", open: openPlain}).start(t, s.addr, query)
	var readings []*reading
	var past []string
	for i := range 9*len(decoders) + 64 {
		if d := i / 9; i%9 == 4 && d < len(decoders) && decoders[d].installed(t) {
			r := decoders[d].start(t, s.addr, query)
			for _, line := range past {
				r.want(line)
			}
			readings = append(readings, r)
		}
		past = append(past, write(t, s.things, i, plain))
		for _, r := range readings {
			r.want(past[i])
		}
		if i%25 == 24 {
			for _, r := range readings {
				if !r.hidesHeartbeats {
					r.wantPrivate()
				}
			}
		}
	}
	checkBytes(t, slices.Concat(s.http.Watches(), s.sockets.Watches()))
}

// The initial events arrive in compressed blocks, and later events in blocks that are not
// compressed. Each decoder must print each later event before the next one is written.
func TestDecodersReadInitialBlocks(t *testing.T) {
	if err := nodetest.Install(nodeDir); err != nil {
		t.Log(err) // the decoders that need a package of npm are not installed
	}
	s := startSharing(t, watchserver.ShareInitial)
	const objects, later, query = 300, 5, "watch=1"
	uncompressed := decoder{name: "uncompressed", open: openPlain}
	plain := uncompressed.start(t, s.addr, query)
	for i := range objects {
		write(t, s.things, i, plain)
	}
	ordered, state := uncompressed.start(t, s.addr, query), make([]string, objects)
	for i := range state {
		state[i] = <-ordered.events
	}
	var readings []*reading
	for _, d := range decoders {
		if d.socket || !d.installed(t) {
			continue
		}
		r := d.start(t, s.addr, query)
		for _, line := range state {
			r.want(line)
		}
		readings = append(readings, r)
	}
	for i := range later {
		line := write(t, s.things, objects+i, plain)
		for _, r := range readings {
			r.want(line)
		}
	}
	for _, w := range s.http.Watches() {
		t.Logf("%-9s %-18s %3d events, %4d bytes each", w.Transport, w.Compression, w.Events, w.Bytes/max(w.Events, 1))
	}
}

// A sharingServer serves a collection over HTTP at /things and over WebSocket at /sockets. It uses
// SharedCompression.
type sharingServer struct {
	addr          string
	things        *store.Collection
	http, sockets *watchserver.Server
}

func startSharing(t *testing.T, setting watchserver.SharedCompression) *sharingServer {
	c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{APIVersion: "v1", Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	serve := func(heartbeat time.Duration) *watchserver.Server {
		return &watchserver.Server{
			Source: c, SharedCompression: setting,
			Timing: watchserver.Timing{Heartbeat: heartbeat, Bookmark: 100 * time.Millisecond},
		}
	}
	// Over WebSocket a client has to answer a heartbeat before the next one, and a busy machine can
	// stop a client for seconds. Bookmarks suffice for the test.
	s := &sharingServer{things: c, http: serve(500 * time.Millisecond), sockets: serve(decodeTimeout)}
	mux := http.NewServeMux()
	mux.Handle("/things", s.http)
	mux.Handle("/sockets", s.sockets)
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html") // openChromium appends a script
	})
	hs := httptest.NewUnstartedServer(mux)
	hs.Config.Protocols = new(http.Protocols)
	hs.Config.Protocols.SetHTTP1(true)
	hs.Config.Protocols.SetUnencryptedHTTP2(true)
	h2.Configure(hs.Config, h2.Config{})
	hs.Start()
	t.Cleanup(func() {
		hs.CloseClientConnections()
		hs.Close()
	})
	s.addr = hs.Listener.Addr().String()
	return s
}

// checkBytes verifies that watches shared a compression history. With gzip and with
// permessage-deflate, at least one watch must have received fewer bytes per event than a separately
// compressed event has.
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

// incompressible is the number of random bytes in each object. An event that is compressed on its
// own has at least that many bytes.
const incompressible = 1024

// write creates an object. It returns the line that the uncompressed watch prints for the object.
// plain is the output of that watch.
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
