//go:build unix

package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

//go:embed testdata/page.html
var page []byte

// A report is what a page says it saw: the texts of the events, and why it tells.
type report struct {
	Stage                  string
	EventSource, WebSocket []string
}

// An office serves the page, and takes its reports, at an origin of its own.
type office struct {
	url     string
	server  *httptest.Server
	conns   *connections
	reports chan report
	stages  sync.Map // those reported: a browser sends a report again whose answer was cut off
}

// newOffice opens an office. watch, where not nil, is served at the same origin.
func newOffice(t *testing.T, watch http.Handler) *office {
	t.Helper()
	o := &office{reports: make(chan report, 8)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(page)
	})
	mux.HandleFunc("POST /report", func(w http.ResponseWriter, r *http.Request) {
		var got report
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Errorf("a report of the page: %v", err)
		}
		if _, again := o.stages.LoadOrStore(got.Stage, true); !again {
			o.reports <- got
		}
	})
	if watch != nil {
		mux.Handle("/things", watch)
	}
	o.server = httptest.NewUnstartedServer(mux)
	o.conns = &connections{Listener: o.server.Listener}
	o.server.Listener = o.conns
	h2.Configure(o.server.Config, transport.Options{})
	o.server.Start()
	o.url = o.server.URL
	t.Cleanup(o.server.Close)
	return o
}

// wait returns the report of a stage.
func (o *office) wait(ctx context.Context, t *testing.T, stage string) report {
	t.Helper()
	select {
	case r := <-o.reports:
		if r.Stage != stage {
			t.Fatalf("the page reports %q, want %q; it saw %d events over EventSource and %d over WebSocket",
				r.Stage, stage, len(r.EventSource), len(r.WebSocket))
		}
		return r
	case <-ctx.Done():
		t.Fatalf("the page did not report %q: %v", stage, ctx.Err())
	}
	return report{}
}

// connections is a listener that can break what it has accepted.
type connections struct {
	net.Listener

	mu   sync.Mutex
	open []net.Conn // guarded by mu
}

func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, conn)
	return conn, nil
}

// cut breaks all connections: the browser sees a reset.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
	c.open = nil
}

// A scene is a collection with a writer, and a server that a browser watches.
type scene struct {
	things *store.Collection
	ledger *ledger
	writer *writer
	watch  *office
	url    url.URL
	resume chan string // what an EventSource sent as Last-Event-ID
}

// newScene opens a scene whose server admits pages of the origins given beside its own.
func newScene(ctx context.Context, t *testing.T, origins ...string) *scene {
	t.Helper()
	s := &scene{things: newThings(t), ledger: newLedger(), resume: make(chan string, 8)}
	s.writer = newWriter("writer", firstFollower-1, s.things, s.ledger)
	s.write(ctx, t, 20)
	ws := &watchserver.Server{Source: s.things, AllowOrigins: origins, Timing: watchserver.Timing{Bookmark: -1}}
	handler := watchserver.CORS(ws, origins)
	s.watch = newOffice(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("Last-Event-ID"); id != "" {
			s.resume <- id
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := ws.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
	q := url.Values{
		"watch": {"1"}, "labelSelector": {selectors[0].text}, "allowWatchBookmarks": {"1"},
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"},
	}
	u, err := url.Parse(s.watch.url + "/things?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	s.url = *u
	return s
}

// pageOf returns the address of the page of an origin, told to watch the scene.
func (s *scene) pageOf(o *office) string {
	return o.url + "/page?" + url.Values{"watch": {s.url.String()}}.Encode()
}

func (s *scene) write(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := s.writer.write(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// end writes a sentinel.
func (s *scene) end(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if err := s.writer.put(ctx, listwatch.Key{Name: name}, map[string]string{"tier": "gold"}, objectSize); err != nil {
		t.Fatal(err)
	}
}

// texts returns how a page must see the writes after a version.
func (s *scene) texts(after listwatch.Version) []string {
	var texts []string
	for _, w := range s.ledger.history() {
		if eventType, object := w.seenBy(selectors[0]); eventType != "" && w.version > after {
			texts = append(texts, eventText(eventType, object.data))
		}
	}
	return texts
}

// state returns how a page must see what there is now, in the order of names.
func (s *scene) state() []string {
	var keys []listwatch.Key
	for key, at := range s.writer.owned {
		if selectors[0].matches(at.labels) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b listwatch.Key) int { return cmp.Compare(a.Name, b.Name) })
	var texts []string
	for _, key := range keys {
		texts = append(texts, eventText("ADDED", s.writer.owned[key].data))
	}
	return texts
}

func eventText(eventType string, object []byte) string {
	return fmt.Sprintf(`{"type":"%s","object":%s}`, eventType, object)
}

// checkTexts compares what a page saw with the state it found, the bookmark behind that, and what came then.
func checkTexts(got, state []string, at listwatch.Version, then []string) error {
	n := len(state)
	if len(got) != n+1+len(then) {
		return fmt.Errorf("got %d events, want %d, a bookmark and %d", len(got), n, len(then))
	}
	for i, want := range slices.Concat(state, []string{""}, then) {
		if i != n && got[i] != want {
			return fmt.Errorf("event %d: %s", i, firstDifference([]byte(got[i]), []byte(want)))
		}
	}
	for _, want := range []string{`"type":"BOOKMARK"`, `"k8s.io/initial-events-end":"true"`, string(versionText(at))} {
		if !bytes.Contains([]byte(got[n]), []byte(want)) {
			return fmt.Errorf("event %d: got %s, want one with %s", n, got[n], want)
		}
	}
	return nil
}

// A page of the server's own origin, and one of an origin that is allowed, see the same events over an EventSource and a
// WebSocket. When the connection breaks, the EventSource comes back by itself and misses nothing.
func TestBrowserSeesEveryEvent(t *testing.T) {
	for _, origin := range []string{"own", "allowed"} {
		t.Run("origin="+origin, func(t *testing.T) {
			browserPath(t)
			t.Logf("seed %d", seed())
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var s *scene
			var pages *office
			if origin == "own" {
				s = newScene(ctx, t)
				pages = s.watch
			} else {
				pages = newOffice(t, nil)
				s = newScene(ctx, t, pages.url)
			}
			browse(ctx, t, s.pageOf(pages))
			testBrowser(ctx, t, s, pages)
		})
	}
}

func testBrowser(ctx context.Context, t *testing.T, s *scene, pages *office) {
	start, state := s.ledger.head(), s.state()
	pages.wait(ctx, t, "synced")
	s.write(ctx, t, 200)
	s.end(ctx, t, "sentinel-first")
	middle := s.ledger.head()
	first := pages.wait(ctx, t, "first")
	if err := checkTexts(first.WebSocket, state, start, s.texts(start)); err != nil {
		t.Errorf("WebSocket: %v", err)
	}
	s.watch.conns.cut()
	s.write(ctx, t, 200)
	s.end(ctx, t, "sentinel-last")
	last := pages.wait(ctx, t, "last")
	if err := checkTexts(last.EventSource, state, start, s.texts(start)); err != nil {
		t.Errorf("EventSource: %v", err)
	}
	select {
	case id := <-s.resume:
		if id != middle.String() {
			t.Errorf("the EventSource came back with Last-Event-ID %s, want %d", id, middle)
		}
	default:
		t.Error("the EventSource did not come back with Last-Event-ID")
	}
}

// A page of any other origin gets neither: the WebSocket is refused, and the browser keeps the answer to the EventSource from it.
func TestBrowserKeepsForeignPagesOut(t *testing.T) {
	browserPath(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	allowed, foreign := newOffice(t, nil), newOffice(t, nil)
	s := newScene(ctx, t, allowed.url)
	browse(ctx, t, s.pageOf(foreign))
	r := foreign.wait(ctx, t, "refused")
	if err := errors.Join(nothing("EventSource", r.EventSource), nothing("WebSocket", r.WebSocket)); err != nil {
		t.Error(err)
	}
}

func nothing(what string, seen []string) error {
	if len(seen) > 0 {
		return fmt.Errorf("the foreign page saw %d events over %s, the first is %s", len(seen), what, excerptAt([]byte(seen[0]), 0))
	}
	return nil
}
