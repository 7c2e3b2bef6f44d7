package watchserver_test

import (
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

func TestLargeListsLeaveAProcessorFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Pod"})
		if err != nil {
			t.Fatal(err)
		}
		for name, size := range map[string]int{"a": 50_000, "b": 50_000, "small": 10} {
			if _, err := c.Create(t.Context(), fmt.Appendf(nil, `{"metadata":{"name":%q},"x":%q}`, name, strings.Repeat("x", size))); err != nil {
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
		if w := list(watchserver.Endpoint{Source: c, Name: "small"}, "application/json"); w.Code != 200 || w.Body.Len() < 100 {
			t.Errorf("a small list: got %d with %d bytes", w.Code, w.Body.Len())
		}
		close(slow.finish)
		synctest.Wait()
		if finished.Load() != n {
			t.Errorf("%d lists ended, want %d", finished.Load(), n)
		}
	})
}
