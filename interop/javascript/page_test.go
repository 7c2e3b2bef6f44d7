//go:build unix

package javascript

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// page follows the collection over each transport and posts its status and objects after each
// change.
const page = `<!doctype html><script type="module">
  import { collection } from "/js/listwatch.js";
  for (const transport of ["fetch", "websocket", "eventsource"]) {
    let posts = Promise.resolve();
    collection("/things?over=" + transport, { transports: [transport] }).subscribe((snapshot) => {
      const values = Object.fromEntries([...snapshot].map(([key, object]) => [key, object.value]));
      const body = JSON.stringify({ transport, status: snapshot.status, values });
      posts = posts.then(() => fetch("/report", { method: "POST", body }));
    });
  }
</script>`

// A report holds the status and the objects of the page's collection over one transport.
type report struct {
	Transport, Status string
	Values            map[string]int
}

// A pageServer serves a collection and the page that follows it.
type pageServer struct {
	db      *memory.DB
	things  *store.Collection
	page    string
	url     string
	reports map[string]chan report // the reports that the page has posted, by transport
	down    atomic.Bool            // if true, the server refuses watches

	mu sync.Mutex
	// Guarded by mu.
	conns   []net.Conn
	watches map[string][]url.Values // the parameters of the accepted watches, by transport
}

func newPageServer(t *testing.T) *pageServer {
	t.Helper()
	return servePage(t, page, "fetch", "websocket", "eventsource")
}

// servePage starts a server of a page that reports what it sees over the given transports.
func servePage(t *testing.T, page string, transports ...string) *pageServer {
	t.Helper()
	s := &pageServer{
		page: page, db: memory.Open(memory.Options{}), reports: map[string]chan report{},
		watches: map[string][]url.Values{},
	}
	for _, transport := range transports {
		s.reports[transport] = make(chan report, 1000)
	}
	var err error
	if s.things, err = s.db.Collection(store.CollectionSpec{
		APIVersion: "example.com/v1", Kind: "Thing",
		Plural: "things",
	}); err != nil {
		t.Fatal(err)
	}
	ws := &watchserver.Server{Source: s.things}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, s.page)
	})
	mux.Handle("GET /js/", http.StripPrefix("/js", js.Handler()))
	mux.HandleFunc("GET /things", func(w http.ResponseWriter, r *http.Request) { s.watch(ws, w, r) })
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		var got report
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		s.reports[got.Transport] <- got
	})
	server := httptest.NewUnstartedServer(mux)
	server.Config.ConnState = s.track
	server.Start()
	s.url = server.URL
	t.Cleanup(server.Close)
	t.Cleanup(s.cut)
	t.Cleanup(func() { s.down.Store(true) })
	return s
}

func (s *pageServer) watch(ws http.Handler, w http.ResponseWriter, r *http.Request) {
	if s.down.Load() {
		http.Error(w, "the server is down", http.StatusServiceUnavailable)
		return
	}
	s.mu.Lock()
	over := r.URL.Query().Get("over")
	s.watches[over] = append(s.watches[over], r.URL.Query())
	s.mu.Unlock()
	ws.ServeHTTP(w, r)
}

// track records the connections of watches for cut. httptest does not close them, because they are
// hijacked.
func (s *pageServer) track(c net.Conn, state http.ConnState) {
	if state == http.StateHijacked {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns = append(s.conns, c)
	}
}

// cut breaks the connections of all watches.
func (s *pageServer) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
	s.conns = nil
}

// put creates or replaces the object called name.
func (s *pageServer) put(t *testing.T, name string, value int) {
	t.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q},"value":%d}`, name, value)
	testkit.Put(t, s.things, data)
}

// await waits until the collections of all transports have this status and these objects.
func (s *pageServer) await(ctx context.Context, t *testing.T, step, status string, values map[string]int) {
	t.Helper()
	for transport, reports := range s.reports {
		for got := (report{}); got.Status != status || !maps.Equal(got.Values, values); {
			select {
			case got = <-reports:
			case <-ctx.Done():
				t.Fatalf("%s over %s: the page has %+v, want status %s and %v", step, transport, got, status, values)
			}
		}
	}
}

// lastWatch returns the parameters of the newest watch over a transport.
func (s *pageServer) lastWatch(transport string) url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.watches[transport]
	return all[len(all)-1]
}

// Each engine runs these pages in frames of one page, because a browser takes seconds to start.
func TestPagesInEachEngine(t *testing.T) {
	for _, engine := range browsertest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			following, stuck, presence := newPageServer(t), servePage(t, stuckPage, "fetch"), newPresenceServer(t)
			browsertest.OpenIn(ctx, t, engine, following.url, stuck.url, presence.url)
			t.Run("following", func(t *testing.T) { following.testPage(ctx, t) })
			t.Run("stuck", func(t *testing.T) { stuck.testStuckPage(ctx, t) })
			t.Run("presence", func(t *testing.T) {
				presence.T = t
				presence.testPresencePage(ctx)
			})
		})
	}
}

// testPage tests that the page lists, watches, reconnects, resumes, and reads the state again after
// a 410, over each transport.
func (s *pageServer) testPage(ctx context.Context, t *testing.T) {
	s.put(t, "a", 1)
	s.put(t, "b", 1)
	s.await(ctx, t, "list", "live", map[string]int{"a": 1, "b": 1})

	s.put(t, "a", 2)
	s.await(ctx, t, "watch", "live", map[string]int{"a": 2, "b": 1})

	s.down.Store(true)
	s.cut()
	s.await(ctx, t, "cut", "reconnecting", map[string]int{"a": 2, "b": 1})
	version := s.db.Version().String()
	s.put(t, "c", 1)
	s.down.Store(false)
	s.await(ctx, t, "resume", "live", map[string]int{"a": 2, "b": 1, "c": 1})
	for transport := range s.reports {
		if got := s.lastWatch(transport); got.Get("sendInitialEvents") != "" ||
			len(got.Get("resourceVersion")) != len(version) {
			t.Errorf("%s: reconnected with %v, want a resume", transport, got)
		}
	}

	s.down.Store(true)
	s.cut()
	if _, err := s.things.Delete(ctx, listwatch.Key{Name: "b"}, listwatch.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	s.put(t, "a", 3)
	s.db.Compact()
	s.down.Store(false)
	s.await(ctx, t, "410", "live", map[string]int{"a": 3, "c": 1})
	for transport := range s.reports {
		got := s.lastWatch(transport)
		if got.Get("sendInitialEvents") != "true" || got.Get("initialEventsSince") == "" || got.Has("resourceVersion") {
			t.Errorf("%s: after a 410 the watch had %v, want the state as a difference", transport, got)
		}
	}
}
