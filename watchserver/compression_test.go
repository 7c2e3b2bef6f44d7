package watchserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// padding is text that makes an object large enough to compress.
var padding = map[string]string{
	"padding": strings.Repeat("padding-", 6) + "x",
	"more":    strings.Repeat("padding-", 7) + "x",
}

// Conformance cases comp/gzip, comp/zstd, comp/ws-deflate.
func TestCompressionDoesNotChangeAWatch(t *testing.T) {
	for _, coding := range transport.Codings() {
		onEachTransport(t, nil, func(f *fixture, c transport.Client) {
			var opened watchserver.Watch
			f.WatchServer.Trace = &watchserver.Trace{Opened: func(_ context.Context,
				w watchserver.Watch,
			) {
				opened = w
			}}
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
				f.Errorf("got compression %q, want %q", opened.Compression, want)
			}
			w.wantEnd()
			again := f.watchCompressed(c, fmt.Sprintf("resourceVersion=%s&timeoutSeconds=1", versions[0]), coding)
			again.want("MODIFIED a", "ADDED c")
			again.wantEnd()
			f.watchCompressed(c, "resourceVersion=1", coding).wantError(listwatch.Expired)
		})
	}
}

// This is the conformance case comp/first-event-latency. By default net/http requests gzip and
// decompresses the response, so client-go receives compressed watches in this way. Each
// event must arrive before the next one is written, and the body must end with the watch.
func TestNetHTTPReadsEachEventAtOnce(t *testing.T) {
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
				t.Errorf("%v: got an uncompressed response with headers %v", protocols, res.Header)
			}
			body, start := bufio.NewReader(res.Body), time.Now()
			for i := range 5 {
				name := fmt.Sprintf("flag-%d-%d", n, i)
				f.put(name, padding)
				for {
					line, err := body.ReadString('\n')
					if err != nil || !strings.HasPrefix(line, `{"type":"ADDED"`) {
						t.Fatalf("event %d: got %q, %v", i, line, err)
					}
					if strings.Contains(line, `"name":"`+name+`"`) {
						break
					}
				}
			}
			if d := time.Since(start); d > 0 {
				t.Errorf("%v: the events took %v, want no time", protocols, d)
			}
			if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
				t.Errorf("%v: got %q, %v at the end; want nothing", protocols, rest, err)
			}
			tr.CloseIdleConnections()
		}
	})
}

// A countingRepresentation counts the calls of AppendObject.
type countingRepresentation struct{ count *atomic.Int64 }

func (c countingRepresentation) AppendObject(dst []byte, e listwatch.Event) []byte {
	c.count.Add(1)
	return append(dst, e.Object.Data...)
}
func (c countingRepresentation) AfterFirst() transport.Representation { return c }
func (c countingRepresentation) DependsOnTime() bool                  { return false }
func (c countingRepresentation) ListType(listwatch.Description) (apiVersion, kind string) {
	return "v1", "List"
}
func (c countingRepresentation) AppendItem(dst []byte, _ *listwatch.Object) []byte { return dst }
func (c countingRepresentation) offer(map[string]string, bool) (apihttp.ListRepresentation, error) {
	return c, nil
}

// Conformance case comp/shared-once: an event is encoded and compressed once for a thousand
// watchers.
func TestAllWatchersShareOneCompression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flags, representation := memory.New[Flag](), countingRepresentation{new(atomic.Int64)}
		var server *watchserver.Server
		s := servertest.Start(t, nil, servertest.Options{
			Configure: func(ws *watchserver.Server) { server = ws },
			Wrap: func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r.Header.Set("Accept", "application/json;as=Counted")
					serveAs(server, representation.offer, watchserver.Endpoint{Source: flags}).ServeHTTP(w, r)
				})
			},
		})
		var receivers [1000]transport.Receiver
		for i := range receivers {
			r := &transport.Request{URL: s.WatchURL("/flags", ""), Codings: []string{"gzip"}}
			var err error
			if receivers[i], err = s.Client("chunked").Dial(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			defer receivers[i].Close()
		}
		for n := range 3 {
			if _, err := flags.Create(t.Context(),
				Flag{Metadata: listwatch.Metadata{Name: fmt.Sprint("f", n), Annotations: padding}}); err != nil {
				t.Fatal(err)
			}
			for _, r := range receivers {
				if e, err := r.Receive(); err != nil || e.Type != "ADDED" {
					t.Fatalf("got %s, %v", e.Type, err)
				}
			}
			if got := representation.count.Load(); got != int64(n+1) {
				t.Fatalf("got %d encodings of %d events, want one each", got, n+1)
			}
		}
	})
}

// Conformance case comp/breach-opt-out.
func TestNoCompressionDisablesCompression(t *testing.T) {
	off := func(s *watchserver.Server) { s.NoCompression = true }
	onEachTransport(t, off, func(f *fixture, c transport.Client) {
		f.put("a", padding)
		w := f.watchCompressed(c, "timeoutSeconds=1", "gzip")
		for _, name := range []string{"Content-Encoding", "Sec-Websocket-Extensions"} {
			if got := w.Header().Get(name); got != "" {
				f.Errorf("got %s: %q, want none", name, got)
			}
		}
		w.want("ADDED a")
		w.wantEnd()
	})
	flags := memory.New[Flag]()
	for i := range 400 {
		if _, err := flags.Create(t.Context(),
			Flag{Metadata: listwatch.Metadata{Name: fmt.Sprint("f", i), Annotations: padding}}); err != nil {
			t.Fatal(err)
		}
	}
	server := servertest.Start(t, flags, servertest.Options{Sockets: true, Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/secret" { // only this path is without compression
				r = transport.WithoutCompression(r)
			}
			next.ServeHTTP(w, r)
		})
	}})
	for path, want := range map[string]string{
		"/": "gzip", "/secret": "", "/?watch=1&timeoutSeconds=1": "gzip",
		"/secret?watch=1&timeoutSeconds=1": "",
	} {
		res := testkit.Get(t, server.URL(path), "Accept-Encoding", "gzip")
		if got := res.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%s: got Content-Encoding %q, want %q", path, got, want)
		}
		res.Body.Close()
	}
}

// The error response is not compressed, although the request excludes identity.
func TestErrorsAreNotCompressed(t *testing.T) {
	server := servertest.Start(t, memory.New[Flag](), servertest.Options{Sockets: true})
	res := testkit.Get(t, server.URL("/?watch=1"), "Accept-Encoding", "br, identity;q=0")
	body, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusNotAcceptable || res.Header.Get("Content-Encoding") != "" ||
		!strings.Contains(string(body), "gzip, zstd, identity") || err != nil {
		t.Errorf("got %s with headers %v and body %s, %v; want 406, uncompressed, with the available codings",
			res.Status, res.Header, body, err)
	}
}
