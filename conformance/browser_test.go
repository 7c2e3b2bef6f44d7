//go:build unix

package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// A browserFixture is a collection with a writer, and a server that a browser watches.
type browserFixture struct {
	things       *store.Collection
	log          *writeLog
	writer       *writer
	server       *reportServer
	url          url.URL
	lastEventIDs chan string // Last-Event-ID headers of EventSource requests
}

// newBrowserFixture starts a fixture. Its server also allows pages of the given origins.
func newBrowserFixture(ctx context.Context, t *testing.T, origins ...string) *browserFixture {
	t.Helper()
	s := &browserFixture{things: newCollection(t), log: newWriteLog(), lastEventIDs: make(chan string, 8)}
	s.writer = newWriter("writer", firstWatcherActor-1, s.things, s.log)
	s.write(ctx, t, 20)
	ws := &watchserver.Server{
		Source: s.things, Access: watchserver.Access{Origins: origins}, Timing: watchserver.Timing{Bookmark: -1},
		SharedCompression: watchserver.ShareAlways,
	}
	handler := watchserver.CORS(ws, origins)
	s.server = newReportServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("Last-Event-ID"); id != "" {
			s.lastEventIDs <- id
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := ws.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
	q := url.Values{
		"watch": {"1"}, "labelSelector": {selectors[0].text}, "allowWatchBookmarks": {"1"},
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"},
	}
	u, err := url.Parse(s.server.url + "/things?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	s.url = *u
	return s
}

// shareHistory opens one more watch in each of the two wire forms that the page uses, because the
// server compresses events with a shared history only if several watches share it. The watches
// end with the test.
func (b *browserFixture) shareHistory(t *testing.T) {
	t.Helper()
	r := transport.Request{URL: &b.url, Codings: []string{"gzip"}, Framings: []framing.Framer{framing.SSE{}}}
	for _, client := range []transport.Client{&chunked.Client{}, &websocket.Client{}} {
		receiver, err := client.Dial(t.Context(), &r)
		if err != nil {
			t.Fatal(err)
		}
		var reading sync.WaitGroup
		reading.Go(func() {
			for err := error(nil); err == nil; {
				_, err = receiver.Receive()
			}
		})
		t.Cleanup(func() {
			receiver.Close()
			reading.Wait()
		})
		r.Framings = []framing.Framer{framing.JSON{}}
	}
}

// pageURL returns the URL of the page on o, with the URL that the page watches as a parameter.
func (b *browserFixture) pageURL(o *reportServer) string {
	return o.url + "/page?" + url.Values{"watch": {b.url.String()}}.Encode()
}

func (b *browserFixture) write(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := b.writer.write(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *browserFixture) writeSentinel(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if err := b.writer.put(ctx, listwatch.Key{Name: name}, map[string]string{"tier": "gold"}, objectSize); err != nil {
		t.Fatal(err)
	}
}

// eventsAfter returns the events that a page must see for the writes after the given version.
func (b *browserFixture) eventsAfter(after listwatch.Version) []string {
	var texts []string
	for _, w := range b.log.history() {
		if eventType, object := w.expectedEvent(selectors[0]); eventType != "" && w.version > after {
			texts = append(texts, eventJSON(eventType, object.data))
		}
	}
	return texts
}

// initialEvents returns the ADDED events of the current objects that selectors[0] matches, ordered
// by name.
func (b *browserFixture) initialEvents() []string {
	var keys []listwatch.Key
	for key, at := range b.writer.owned {
		if selectors[0].matches(at.labels) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, other listwatch.Key) int { return cmp.Compare(a.Name, other.Name) })
	var texts []string
	for _, key := range keys {
		texts = append(texts, eventJSON("ADDED", b.writer.owned[key].data))
	}
	return texts
}

func eventJSON(eventType string, object []byte) string {
	return fmt.Sprintf(`{"type":"%s","object":%s}`, eventType, object)
}

// verifyEvents checks that got, the events that a page saw, are the initial events in state, a
// bookmark with version at, and the events in then.
func verifyEvents(got, state []string, at listwatch.Version, then []string) error {
	n := len(state)
	if len(got) != n+1+len(then) {
		return fmt.Errorf("got %d events, want %d initial events, a bookmark and %d events", len(got), n, len(then))
	}
	for i, want := range slices.Concat(state, []string{""}, then) {
		if i != n && got[i] != want {
			return fmt.Errorf("event %d: %s", i, firstDifference([]byte(got[i]), []byte(want)))
		}
	}
	for _, want := range []string{
		`"type":"BOOKMARK"`, `"k8s.io/initial-events-end":"true"`, string(versionMember(at)),
	} {
		if !bytes.Contains([]byte(got[n]), []byte(want)) {
			return fmt.Errorf("event %d: got %s, want an event with %s", n, got[n], want)
		}
	}
	return nil
}

// A page of the server's own origin and a page of an allowed origin must see the same events over
// EventSource and WebSocket. An EventSource whose connection breaks must resume without a gap.
func TestBrowserSeesEveryEvent(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	for _, origin := range []string{"own", "allowed"} {
		t.Run("origin="+origin, func(t *testing.T) {
			browsertest.Path(t)
			t.Logf("seed %d", seed())
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			var s *browserFixture
			var pages *reportServer
			if origin == "own" {
				s = newBrowserFixture(ctx, t)
				pages = s.server
			} else {
				pages = newReportServer(t, nil)
				s = newBrowserFixture(ctx, t, pages.url)
			}
			browsertest.Open(ctx, t, s.pageURL(pages))
			testBrowser(ctx, t, s, pages)
		})
	}
}

func testBrowser(ctx context.Context, t *testing.T, s *browserFixture, pages *reportServer) {
	start, state := s.log.newestVersion(), s.initialEvents()
	s.shareHistory(t)
	pages.awaitReport(ctx, t, "synced")
	s.write(ctx, t, 200)
	s.writeSentinel(ctx, t, "sentinel-first")
	middle := s.log.newestVersion()
	first := pages.awaitReport(ctx, t, "first")
	if err := verifyEvents(first.WebSocket, state, start, s.eventsAfter(start)); err != nil {
		t.Errorf("WebSocket: %v", err)
	}
	s.server.conns.reset()
	s.write(ctx, t, 200)
	s.writeSentinel(ctx, t, "sentinel-last")
	last := pages.awaitReport(ctx, t, "last")
	if err := verifyEvents(last.EventSource, state, start, s.eventsAfter(start)); err != nil {
		t.Errorf("EventSource: %v", err)
	}
	select {
	case id := <-s.lastEventIDs:
		if id != middle.String() {
			t.Errorf("the EventSource resumed with Last-Event-ID %s, want %d", id, middle)
		}
	default:
		t.Error("the EventSource did not resume with Last-Event-ID")
	}
}

// A page of another origin must see no events: the server refuses its WebSocket, and the
// browser hides the response from its EventSource.
func TestBrowserBlocksForeignOrigins(t *testing.T) {
	browsertest.Path(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	allowed, foreign := newReportServer(t, nil), newReportServer(t, nil)
	s := newBrowserFixture(ctx, t, allowed.url)
	browsertest.Open(ctx, t, s.pageURL(foreign))
	r := foreign.awaitReport(ctx, t, "refused")
	if err := errors.Join(requireNoEvents("EventSource", r.EventSource),
		requireNoEvents("WebSocket", r.WebSocket)); err != nil {
		t.Error(err)
	}
}

func requireNoEvents(what string, seen []string) error {
	if len(seen) > 0 {
		return fmt.Errorf("the foreign page saw %d events over %s, the first is %s", len(seen), what,
			excerptAt([]byte(seen[0]), 0))
	}
	return nil
}
