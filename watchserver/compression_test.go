package watchserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/watchserver"
)

// padding makes an object worth compressing.
var padding = map[string]string{"padding": strings.Repeat("padding-", 6) + "x", "more": strings.Repeat("padding-", 7) + "x"}

// comp/gzip, comp/zstd, comp/ws-deflate
func TestAWatchIsTheSameCompressed(t *testing.T) {
	for _, coding := range transport.Codings() {
		onEachTransport(t, nil, func(f *fixture, c transport.Client) {
			var opened watchserver.Watch
			f.WatchServer.Trace = &watchserver.Trace{Opened: func(w watchserver.Watch) { opened = w }}
			f.put("a", padding)
			w := f.watchCompressed(c, "timeoutSeconds=100", coding)
			w.want("ADDED a")
			for _, name := range []string{"b", "a", "c"} {
				f.put(name, padding)
			}
			versions := w.want("ADDED b", "MODIFIED a", "ADDED c")
			want := coding
			if c.Name() == "websocket" {
				want = "permessage-deflate"
			}
			if opened.Compression != want {
				f.Errorf("compressed with %q, want %q", opened.Compression, want)
			}
			w.wantEnd()
			again := f.watchCompressed(c, fmt.Sprintf("resourceVersion=%s&timeoutSeconds=1", versions[0]), coding)
			again.want("MODIFIED a", "ADDED c")
			again.wantEnd()
			f.watchCompressed(c, "resourceVersion=1", coding).wantError(listwatch.Expired)
		})
	}
}

// comp/first-event-latency: net/http asks for gzip by itself and decompresses what comes, so this is what client-go sees. Each event
// is there before the next is written, and the end of the body is its end.
func TestClientsOfNetHTTPReadEachEventAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		h1, h2c := new(http.Protocols), new(http.Protocols)
		h1.SetHTTP1(true)
		h2c.SetUnencryptedHTTP2(true)
		for n, protocols := range []*http.Protocols{h1, h2c} {
			tr := &http.Transport{DialContext: f.Dial, Protocols: protocols}
			res, err := (&http.Client{Transport: tr}).Get("http://memnet/flags?watch=1&timeoutSeconds=10")
			if err != nil {
				t.Fatal(err)
			}
			if !res.Uncompressed {
				t.Errorf("%v: not compressed: %v", protocols, res.Header)
			}
			body, start := bufio.NewReader(res.Body), time.Now()
			for i := range 5 {
				name := fmt.Sprintf("of-%d-%d", n, i)
				f.put(name, padding)
				for {
					line, err := body.ReadString('\n')
					if err != nil || !strings.HasPrefix(line, `{"type":"ADDED"`) {
						t.Fatalf("event %d: %q, %v", i, line, err)
					}
					if strings.Contains(line, `"name":"`+name+`"`) {
						break
					}
				}
			}
			if d := time.Since(start); d > 0 {
				t.Errorf("%v: the events took %v", protocols, d)
			}
			if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
				t.Errorf("%v: %q, %v at the end", protocols, rest, err)
			}
			tr.CloseIdleConnections()
		}
	})
}

// A counted shape counts how often something is shown.
type counted struct{ count *atomic.Int64 }

func (c counted) AppendObject(dst []byte, e listwatch.Event) []byte {
	c.count.Add(1)
	return append(dst, e.Object.Data...)
}
func (c counted) AfterFirst() transport.Representation              { return c }
func (c counted) DependsOnTime() bool                               { return false }
func (c counted) AppendListHead(dst, _ []byte) []byte               { return dst }
func (c counted) AppendItem(dst []byte, _ *listwatch.Object) []byte { return dst }
func (c counted) offer(map[string]string, bool) (watchserver.ListRepresentation, error) {
	return c, nil
}

// comp/shared-once: a thousand watchers, and an event is made into bytes and compressed once.
func TestAThousandWatchersShareOneCompression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flags, server, shape := memory.New[Flag](), &watchserver.Server{}, counted{new(atomic.Int64)}
		l := memnet.Listen()
		hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			req.Header.Set("Accept", "application/json;as=Counted")
			server.Serve(w, req, watchserver.Endpoint{Source: flags, Represent: shape.offer})
		})}
		go hs.Serve(l)
		defer hs.Close()
		c := &chunked.Client{Network: transport.Network{Dial: l.Dial}}
		u := &url.URL{Scheme: "http", Host: "memnet", Path: "/flags", RawQuery: "watch=1"}
		var receivers [1000]transport.Receiver
		for i := range receivers {
			var err error
			if receivers[i], err = c.Dial(t.Context(), &transport.Request{URL: u, Codings: []string{"gzip"}}); err != nil {
				t.Fatal(err)
			}
			defer receivers[i].Close()
		}
		for n := range 3 {
			if _, err := flags.Create(t.Context(), Flag{Metadata: listwatch.Metadata{Name: fmt.Sprint("f", n), Annotations: padding}}); err != nil {
				t.Fatal(err)
			}
			for _, r := range receivers {
				if e, err := r.Receive(); err != nil || e.Type != "ADDED" {
					t.Fatalf("got %s, %v", e.Type, err)
				}
			}
			if got := shape.count.Load(); got != int64(n+1) {
				t.Fatalf("%d events were encoded %d times", n+1, got)
			}
		}
	})
}

// comp/breach-opt-out
func TestCompressionCanBeOff(t *testing.T) {
	off := func(s *watchserver.Server) { s.NoCompression = true }
	onEachTransport(t, off, func(f *fixture, c transport.Client) {
		f.put("a", padding)
		w := f.watchCompressed(c, "timeoutSeconds=1", "gzip")
		for _, name := range []string{"Content-Encoding", "Sec-Websocket-Extensions"} {
			if got := w.Header().Get(name); got != "" {
				f.Errorf("%s: %q", name, got)
			}
		}
		w.want("ADDED a")
		w.wantEnd()
	})
	flags := memory.New[Flag]()
	for i := range 400 {
		if _, err := flags.Create(t.Context(), Flag{Metadata: listwatch.Metadata{Name: fmt.Sprint("f", i), Annotations: padding}}); err != nil {
			t.Fatal(err)
		}
	}
	server := &watchserver.Server{Source: flags}
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/secret" { // for one path alone
			r = transport.WithoutCompression(r)
		}
		server.ServeHTTP(w, r)
	}))
	defer hs.Close()
	for path, want := range map[string]string{"/": "gzip", "/secret": "", "/?watch=1&timeoutSeconds=1": "gzip", "/secret?watch=1&timeoutSeconds=1": ""} {
		res := get(t, hs.URL+path, "Accept-Encoding", "gzip")
		if got := res.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		res.Body.Close()
	}
}

// A refusal is plain: what it says of a coding would be about another answer.
func TestAWatchThatExcludesIdentityIsRefusedReadably(t *testing.T) {
	hs := httptest.NewServer(&watchserver.Server{Source: memory.New[Flag]()})
	defer hs.Close()
	req, err := http.NewRequest(http.MethodGet, hs.URL+"?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "br, identity;q=0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusNotAcceptable || res.Header.Get("Content-Encoding") != "" ||
		!strings.Contains(string(body), "gzip, zstd, identity") || err != nil {
		t.Errorf("got %s, %v, %s, %v", res.Status, res.Header, body, err)
	}
}
