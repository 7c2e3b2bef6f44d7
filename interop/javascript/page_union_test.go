//go:build unix

package javascript

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/watchserver"
)

const unionCollections = 20

// unionPage follows 20 collections over one connection, and posts their objects after each change.
const unionPage = `<!doctype html><script type="module">
  import { union } from "/js/listwatch.js";
  const all = union("/watch", Array.from({ length: 20 }, (_, i) => "/things" + i), { transports: [new URLSearchParams(location.search).get("over")] });
  let isPosting = false, isOutdated = false;
  const report = async () => {
    isOutdated = isPosting;
    if (isPosting) return;
    isPosting = true;
    await fetch("/report", { method: "POST", body: JSON.stringify({ status: all.map((c) => c.status), names: all.map((c) => [...c.keys()]) }) }).catch(() => {});
    isPosting = false;
    if (isOutdated) report();
  };
  for (const c of all) c.subscribe(report);
</script>`

// A unionReport is the report that unionPage sends.
type unionReport struct {
	Status []string
	Names  [][]string
}

// A unionServer serves 20 collections in a file, and unionPage. It can be restarted.
type unionServer struct {
	*testing.T
	path, address string
	db            *bolt.DB
	things        []*store.Collection
	server        *http.Server
	watch         *watchserver.Server
	written       int
	reports       chan unionReport

	mu sync.Mutex
	// Guarded by mu.
	requests []url.Values // the watches
}

func (s *unionServer) start() {
	s.Helper()
	var err error
	if s.db, err = bolt.Open(s.path, bolt.Options{}); err != nil {
		s.Fatal(err)
	}
	mux := http.NewServeMux()
	s.watch, s.things = new(watchserver.Server), nil
	for i := range unionCollections {
		c, err := s.db.Collection(store.CollectionSpec{Kind: fmt.Sprint("Thing", i), Plural: fmt.Sprint("things", i)})
		if err != nil {
			s.Fatal(err)
		}
		s.things = append(s.things, c)
		mux.HandleFunc(fmt.Sprint("GET /things", i), func(w http.ResponseWriter, r *http.Request) {
			s.watch.Serve(w, r, watchserver.Endpoint{Source: c})
		})
	}
	union := s.watch.Union(mux)
	mux.HandleFunc("GET /watch", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL.Query())
		s.mu.Unlock()
		union.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, unionPage) })
	mux.Handle("GET /js/", http.StripPrefix("/js", js.Handler()))
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		var got unionReport
		if err := json.NewDecoder(r.Body).Decode(&got); err == nil { // a restart may cut a report
			s.reports <- got
		}
	})
	listener, err := ports.Listen(s.address)
	if err != nil {
		s.Fatal(err)
	}
	s.server = &http.Server{Handler: mux}
	go s.server.Serve(listener) // ends with stop
}

// stop cuts all connections and closes the file.
func (s *unionServer) stop() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s.server.Close()
	_ = s.watch.Drain(ended) // disconnects all watches
	if err := s.db.Close(); err != nil {
		s.Error(err)
	}
}

// write creates n objects, each in the next collection.
func (s *unionServer) write(n int) {
	for range n {
		if _, err := s.things[s.written%unionCollections].Create(s.Context(),
			fmt.Appendf(nil, `{"metadata":{"name":"n%d"}}`, s.written)); err != nil {
			s.Fatal(err)
		}
		s.written++
	}
}

// await waits until the page shows all objects. Each report must be a state of one version: if it
// shows an object, then also every object that was created earlier.
func (s *unionServer) await(ctx context.Context, step string) {
	s.Helper()
	for {
		select {
		case got := <-s.reports:
			var numbers []int
			for _, name := range slices.Concat(got.Names...) {
				n, err := strconv.Atoi(strings.TrimPrefix(name, "n"))
				if err != nil {
					s.Fatal(err)
				}
				numbers = append(numbers, n)
			}
			slices.Sort(numbers)
			for i, n := range numbers {
				if i != n {
					s.Fatalf("%s: the page shows the object %d but not %d", step, n, i)
				}
			}
			if len(numbers) == s.written &&
				!slices.ContainsFunc(got.Status, func(status string) bool { return status != "live" }) {
				return
			}
		case <-ctx.Done():
			s.Fatalf("%s: timeout", step)
		}
	}
}

// A page with 20 collections uses one connection over HTTP/1.1, of which a browser has six. It
// starts from one version, and resumes after a restart of the server without a gap or a relist.
func TestPageFollowsTwentyCollections(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	transports := []string{"fetch", "websocket", "eventsource"}
	var servers []*unionServer
	var urls []string
	for _, over := range transports {
		s := &unionServer{
			T: t, path: filepath.Join(t.TempDir(), "things.db"), address: ports.Address(t),
			reports: make(chan unionReport, 1000),
		}
		s.start()
		t.Cleanup(func() {
			s.T = t
			s.stop()
		})
		s.write(100)
		servers, urls = append(servers, s), append(urls, "http://"+s.address+"/?over="+over)
	}
	browsertest.OpenIn(ctx, t, browsertest.Chromium, urls...)
	for i, s := range servers {
		t.Run(transports[i], func(t *testing.T) {
			s.T = t
			s.testTwentyCollections(ctx)
		})
	}
}

func (s *unionServer) testTwentyCollections(ctx context.Context) {
	s.write(200) // while the page starts
	s.await(ctx, "start")
	s.write(100)
	s.await(ctx, "live")
	s.stop()
	s.start()
	s.write(50)
	s.await(ctx, "restart")
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, q := range s.requests {
		if resumes := q.Get("resourceVersion") != "" &&
			!q.Has("sendInitialEvents"); len(q["of"]) != unionCollections || resumes != (i > 0) {
			s.Errorf("request %d is %v, want all collections, and a resume unless it is the first", i, q)
		}
	}
	if len(s.requests) != 2 {
		s.Errorf("the page sent %d watches, want one before and one after the restart", len(s.requests))
	}
}
