package http3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/watchserver"
)

func TestListAndWatchOverHTTP3(t *testing.T) {
	s := start(t, nil)
	s.put(t, "a", 1)
	r := s.remote(t)
	page, err := r.List(t.Context(), listwatch.Query{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("got %d items, %v, want 1", len(page.Items), err)
	}
	w := testkit.Watch(t, r, listwatch.Query{InitialEvents: listwatch.InitialEventsYes, Bookmarks: true})
	if got, want := read(t, w, 2), []string{"ADDED a", "BOOKMARK "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.put(t, "b", 1)
	s.put(t, "a", 2)
	if got, want := read(t, w, 2), []string{"ADDED b", "MODIFIED a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The response begins before the first event, and each event arrives when it is written.
func TestEventsArriveOneByOne(t *testing.T) {
	s := start(t, nil)
	resp := s.get(t, s.transport(t), s.watch())
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 3 || resp.Header.Get("Incremental") != "?1" {
		t.Fatalf("got %s %s, %v", resp.Proto, resp.Status, resp.Header)
	}
	for _, name := range []string{"a", "b", "c"} {
		s.put(t, name, 1)
		buffer := make([]byte, 1<<10)
		n, err := resp.Body.Read(buffer)
		if err != nil || !strings.Contains(string(buffer[:n]), `"`+name+`"`) {
			t.Fatalf("got %s, %v, want the event of %s", buffer[:n], err, name)
		}
	}
}

func TestQueryOverHTTP3(t *testing.T) {
	s := start(t, nil)
	s.put(t, "a", 1)
	req, err := http.NewRequestWithContext(t.Context(), "QUERY", s.url(""),
		strings.NewReader("fieldSelector=metadata.name%3Da"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := s.transport(t).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text := readAll(resp.Body); resp.StatusCode != http.StatusOK || !strings.Contains(text, `"name":"a"`) {
		t.Errorf("got %s, %s", resp.Status, text)
	}
}

func TestWatchResumesAfterRestart(t *testing.T) {
	s := start(t, nil)
	w := testkit.Watch(t, s.remote(t), listwatch.Query{InitialEvents: listwatch.InitialEventsYes, Bookmarks: true})
	read(t, w, 1)
	s.put(t, "a", 1)
	read(t, w, 1)
	s.kill()
	s.put(t, "b", 1)
	s.listen(t)
	s.put(t, "c", 1)
	if got, want := read(t, w, 2), []string{"ADDED b", "ADDED c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A version is valid over every transport.
func TestWatchResumesOverHTTP2(t *testing.T) {
	s := start(t, nil)
	from := s.put(t, "a", 1)
	s.put(t, "b", 1)
	q := listwatch.Query{Start: listwatch.StartAt, Version: from}
	over3, over2 := read(t, testkit.Watch(t, s.remote(t), q), 1), read(t, testkit.Watch(t, s.overHTTP2(t), q), 1)
	if want := []string{"ADDED b"}; !slices.Equal(over3, want) || !slices.Equal(over2, want) {
		t.Errorf("got %q over HTTP/3 and %q over HTTP/2, want %q", over3, over2, want)
	}
}

func TestExpiredVersionGetsAnErrorEvent(t *testing.T) {
	s := start(t, nil)
	query := s.watch()
	s.put(t, "a", 1)
	s.put(t, "a", 2)
	s.db.Compact()
	text := readAll(s.get(t, s.transport(t), query).Body)
	if !strings.HasPrefix(text, `{"type":"ERROR"`) || !strings.Contains(text, `"code":410`) ||
		strings.Count(text, "\n") != 1 {
		t.Errorf("got %s, want one ERROR event with code 410 and a clean end", text)
	}
}

func TestDrainSendsABookmarkAndEndsCleanly(t *testing.T) {
	s := start(t, nil)
	tr := s.transport(t)
	resp := s.get(t, tr, s.watch()+"&allowWatchBookmarks=1")
	version := fmt.Sprintf(`"resourceVersion":"%d"`, s.put(t, "a", 1))
	if err := s.watches.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := readAll(resp.Body)
	events := strings.Split(strings.TrimSpace(text), "\n")
	if len(events) != 2 || !strings.HasPrefix(events[0], `{"type":"ADDED"`) ||
		!strings.HasPrefix(events[1], `{"type":"BOOKMARK"`) || !strings.Contains(events[1], version) {
		t.Errorf("got %s, want the event, a bookmark with %s and a clean end", text, version)
	}
	refused := s.get(t, tr, "?watch=1")
	if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" ||
		refused.Header.Get("Connection") != "" {
		t.Errorf("got %s, %v, want 503 with Retry-After", refused.Status, refused.Header)
	}
	if list := s.get(t, tr, ""); list.StatusCode != http.StatusOK {
		t.Errorf("a list got %s, want 200", list.Status)
	}
}

func TestTooManyWatchesGet429(t *testing.T) {
	s := start(t, func(ws *watchserver.Server) { ws.Limits.Watches = 2 })
	tr := s.transport(t)
	first := s.get(t, tr, s.watch())
	s.get(t, tr, s.watch())
	third := s.get(t, tr, s.watch())
	if third.StatusCode != http.StatusTooManyRequests || third.Header.Get("Retry-After") == "" {
		t.Errorf("got %s, %v, want 429 with Retry-After", third.Status, third.Header)
	}
	first.Body.Close() // resets the stream, and the connection continues
	for {
		fourth := s.get(t, tr, s.watch())
		if fourth.StatusCode == http.StatusOK {
			return
		}
		if fourth.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("got %s, want 429 until the server has noticed the end of the first watch", fourth.Status)
		}
	}
}

func TestLongHeadersAndURLsAreRefused(t *testing.T) {
	s := start(t, nil)
	tr := s.transport(t)
	if long := s.get(t, tr,
		"?labelSelector="+strings.Repeat("a", 20<<10)); long.StatusCode != http.StatusRequestURITooLong {
		t.Errorf("got %s, want 414", long.Status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url(""), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("a", 70<<10))
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %s, want 431", resp.Status)
	}
}

// The client reads nothing until the server has given up. The end must not look complete.
func TestSlowReaderIsCutOff(t *testing.T) {
	ended := make(chan watchserver.EndReason, 1)
	s := start(t, func(ws *watchserver.Server) {
		ws.Limits.WriteTimeout = time.Second
		ws.Trace = &watchserver.Trace{Closed: func(_ context.Context, _ watchserver.Watch, reason watchserver.EndReason,
			_ error,
		) {
			select {
			case ended <- reason:
			default: // the end of the healthy watch
			}
		}}
	})
	tr := s.transport(t)
	slow, healthy := s.get(t, tr, s.watch()),
		testkit.Watch(t, s.remote(t), listwatch.Query{Start: listwatch.StartAt, Version: s.db.Version()})
	text := strings.Repeat("x", 30<<10)
	for range 100 {
		if _, err := s.things.Create(t.Context(),
			[]byte(`{"metadata":{"generateName":"a-"},"text":"`+text+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	read(t, healthy, 100)
	if reason := <-ended; reason != watchserver.EndTooSlow {
		t.Errorf("the watch ended with %q, want %q", reason, watchserver.EndTooSlow)
	}
	n, err := io.Copy(io.Discard, slow.Body)
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %d bytes and then %v, want an error of the stream", n, err)
	}
	if list := s.get(t, tr, "?limit=1"); list.StatusCode != http.StatusOK {
		t.Errorf("a list over the same connection got %s, want 200", list.Status)
	}
}
