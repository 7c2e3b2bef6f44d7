package watchserver_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// A slowRepresentation blocks at the item b until finish is closed.
type slowRepresentation struct {
	nameRepresentation
	running, finished *atomic.Int64
	finish            chan struct{}
}

func (s slowRepresentation) AppendItem(dst []byte, o *listwatch.Object) []byte {
	if o.Key.Name == "b" {
		s.running.Add(1)
		<-s.finish
		s.finished.Add(1)
	}
	return append(dst, o.Data...)
}

type countedSource struct {
	listwatch.Source
	watches atomic.Int64
}

func (c *countedSource) Unwrap() listwatch.Source { return c.Source }

func (c *countedSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	c.watches.Add(1)
	return c.Source.Watch(ctx, q)
}

// Watches that begin with the state open one after another, however many arrive at once.
func TestWatchesOfTheStateOpenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Pod"})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if _, err := c.Create(t.Context(),
				fmt.Appendf(nil, `{"metadata":{"name":%q},"x":%q}`, name, strings.Repeat("x", 50_000))); err != nil {
				t.Fatal(err)
			}
		}
		source := &countedSource{Source: c}
		var running, finished atomic.Int64
		slow := slowRepresentation{running: &running, finished: &finished, finish: make(chan struct{})}
		offer := func(map[string]string, bool) (apihttp.ListRepresentation, error) { return slow, nil }
		handler := serveAs(&watchserver.Server{}, offer, watchserver.Endpoint{Source: source})
		send := func(ctx context.Context, url, accept string) {
			r := httptest.NewRequestWithContext(ctx, "GET", url, nil)
			r.Header.Set("Accept", accept)
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range max(1, runtime.GOMAXPROCS(0)-1) {
			go send(ctx, "/", "application/json;as=Names") // takes a turn until finish is closed
		}
		synctest.Wait()
		const state = "/?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
		for range 3 { // the requests end with ctx
			go send(ctx, state, "application/json")
			go send(ctx, "/?watch=true&resourceVersion="+c.Stats().Newest.String(), "application/json")
		}
		gone, leave := context.WithCancel(ctx)
		go send(gone, state, "application/json") // until leave
		synctest.Wait()
		leave()
		synctest.Wait()
		if n := source.watches.Load(); n != 3 {
			t.Errorf("%d watches are open, want the three without the state", n)
		}
		close(slow.finish)
		synctest.Wait()
		if n := source.watches.Load(); n != 6 {
			t.Errorf("%d watches are open, want all of the clients that are connected", n)
		}
	})
}

func TestLargeListsLeaveAProcessorFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Pod"})
		if err != nil {
			t.Fatal(err)
		}
		for name, size := range map[string]int{"a": 50_000, "b": 50_000, "small": 10} {
			if _, err := c.Create(t.Context(),
				fmt.Appendf(nil, `{"metadata":{"name":%q},"x":%q}`, name, strings.Repeat("x", size))); err != nil {
				t.Fatal(err)
			}
		}
		var running, finished atomic.Int64
		slow := slowRepresentation{running: &running, finished: &finished, finish: make(chan struct{})}
		s := &watchserver.Server{}
		offer := func(map[string]string, bool) (apihttp.ListRepresentation, error) { return slow, nil }
		list := func(e watchserver.Endpoint, accept string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.Header.Set("Accept", accept)
			serveAs(s, offer, e).ServeHTTP(w, r)
			return w
		}
		n := int64(2 * runtime.GOMAXPROCS(0))
		for range n {
			// The goroutine ends when finish is closed.
			go list(watchserver.Endpoint{Source: c}, "application/json;as=Names")
		}
		synctest.Wait()
		if want := int64(max(1, runtime.GOMAXPROCS(0)-1)); running.Load() != want {
			t.Errorf("%d lists compute at once, want %d", running.Load(), want)
		}
		if w := list(watchserver.Endpoint{Source: c, Selection: listwatch.Selection{Name: "small"}},
			"application/json"); w.Code != 200 || w.Body.Len() < 100 {
			t.Errorf("a small list: got %d with %d bytes", w.Code, w.Body.Len())
		}
		close(slow.finish)
		synctest.Wait()
		if finished.Load() != n {
			t.Errorf("%d lists ended, want %d", finished.Load(), n)
		}
	})
}
