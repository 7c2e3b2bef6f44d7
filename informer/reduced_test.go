package informer_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

var histories = flag.Int("histories", max(racetest.Rounds(20), 5),
	"number of random histories of each kind in TestReducedInformersConverge")

// A reducedWalk writes a random history of some collections, and cuts the connections of the
// informers that follow them with a projection, conflation or a union.
type reducedWalk struct {
	*testing.T
	*rand.Rand
	db          *memory.DB
	collections []*store.Collection
	projection  listwatch.Projection
	informers   []*informer.Informer[*listwatch.Object]
	seen        []map[listwatch.Key]string // what the handlers have seen

	mu    sync.Mutex
	conns []*memnet.Conn // guarded by mu
	// Guarded by mu: the numbers of watches that have resumed and that have started again.
	resumed, restarted int
}

// An informer that does not receive every event must still end with the selected members of the
// newest state, and so must its handlers.
func TestReducedInformersConverge(t *testing.T) {
	for _, kind := range []string{"projection", "conflation", "both", "union"} {
		t.Run(kind, func(t *testing.T) {
			seed, resumed, restarted := rand.Uint64(), 0, 0
			t.Logf("seed %d", seed)
			for i := range *histories {
				synctest.Test(t, func(t *testing.T) {
					w := &reducedWalk{T: t, Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
					w.run(kind)
					resumed, restarted = resumed+w.resumed, restarted+w.restarted
				})
				if t.Failed() {
					t.Fatalf("history %d failed", i)
				}
			}
			// Fewer than one in a million runs of 20 histories have less than 20 resumed watches.
			// With the race detector there are too few histories for that.
			t.Logf("%d resumed and %d new watches", resumed, restarted)
			if !racetest.Enabled && (resumed < *histories || restarted < *histories) {
				t.Errorf("%d resumed and %d new watches, want %d of each", resumed, restarted, *histories)
			}
		})
	}
}

func (w *reducedWalk) run(kind string) {
	w.Cleanup(func() { <-time.After(time.Minute) }) // last: until closed connections have lingered
	w.db = memory.Open(memory.Options{})
	for i := range 2 {
		c, err := w.db.Collection(store.CollectionSpec{Kind: fmt.Sprint("Thing", i)})
		if err != nil {
			w.Fatal(err)
		}
		w.collections = append(w.collections, c)
	}
	server := servertest.Start(w, w.collections[0], servertest.Options{Wrap: w.routes})
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	for _, run := range w.follow(server, kind) {
		running.Go(func() { _ = run(ctx) }) // ends with cancel, and returns its error
	}
	for range 80 {
		w.step()
	}
	w.cut()
	<-time.After(10 * time.Minute)
	synctest.Wait()
	w.compare()
	cancel()
	running.Wait()
}

func (w *reducedWalk) routes(h http.Handler) http.Handler {
	server, mux := h.(*watchserver.Server), http.NewServeMux()
	for i, c := range w.collections {
		mux.HandleFunc(fmt.Sprint("/things", i), func(rw http.ResponseWriter, r *http.Request) {
			server.Serve(rw, r, watchserver.Endpoint{Source: c})
		})
	}
	mux.Handle("/watch", server.Union(mux))
	return mux
}

// follow creates the informers, and returns the functions that run them.
func (w *reducedWalk) follow(server *servertest.Server, kind string) (run []func(context.Context) error) {
	var q listwatch.Query
	if kind != "conflation" {
		var err error
		if w.projection, err = listwatch.ParseProjection("shown"); err != nil {
			w.Fatal(err)
		}
	}
	if kind == "conflation" || kind == "both" {
		// If negative, a watch skips events only while the reader lags.
		q.Conflate = time.Duration(w.IntN(3)-1) * 2 * time.Second
	}
	if kind == "union" {
		u := client.NewUnion(server.URL("/watch"), "/things0?fields=shown", "/things1?fields=shown")
		w.configure(&u.Remote, server)
		for _, source := range u.Sources() {
			run = append(run, w.inform(source, q))
		}
		return append(run, u.Run)
	}
	q.Projection = w.projection
	for i := range w.collections {
		remote := &client.Remote{URL: server.URL(fmt.Sprint("/things", i))}
		w.configure(remote, server)
		run = append(run, w.inform(remote, q))
	}
	return run
}

// configure makes r reconnect soon, over a random transport, and notes its connections.
func (w *reducedWalk) configure(r *client.Remote, server *servertest.Server) {
	r.Network = transport.Network{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := server.Dial(ctx, network, addr)
		if c, ok := conn.(*memnet.Conn); ok {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.conns = append(w.conns, c)
		}
		return conn, err
	}}
	r.Transports = [][]transport.Client{
		{&chunked.Client{Network: r.Network}},
		{&h2.Client{Network: r.Network}},
		{&websocket.Client{Network: r.Network}},
	}[w.IntN(3)]
	r.Backoff = listwatch.Backoff{Min: time.Millisecond, Max: time.Second}
	r.Trace = &client.Trace{Opened: func(_ string, from listwatch.Version) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if from != 0 {
			w.resumed++
		} else {
			w.restarted++
		}
	}}
	w.Cleanup(func() { _ = r.Close() }) // returns nil
}

// inform creates an informer of source, and returns the function that runs it.
func (w *reducedWalk) inform(source listwatch.Source, q listwatch.Query) func(context.Context) error {
	seen := map[listwatch.Key]string{}
	i := &informer.Informer[*listwatch.Object]{Source: source, Selection: q.Selection, Conflate: q.Conflate}
	i.Backoff = listwatch.Backoff{Min: time.Millisecond, Max: time.Second}
	i.Handle(informer.Handler[*listwatch.Object]{
		OnAdd:    func(o *listwatch.Object, _ bool) { seen[o.Key] = string(o.Data) },
		OnUpdate: func(_, o *listwatch.Object) { seen[o.Key] = string(o.Data) },
		OnDelete: func(d informer.Deleted[*listwatch.Object]) { delete(seen, d.Key) },
	}, nil)
	w.informers, w.seen = append(w.informers, i), append(w.seen, seen)
	return i.Run
}

func (w *reducedWalk) step() {
	switch n := w.IntN(40); {
	case n < 24:
		w.write()
	case n < 26:
		w.cut()
	case n < 28:
		w.stall()
	case n < 30:
		w.stall()
		w.write()
		w.db.Compact()
		w.cut()
	case n < 36:
		<-time.After(time.Duration(w.IntN(3000)) * time.Millisecond)
	default:
		synctest.Wait()
	}
}

// write changes a shown or a hidden member of an object, creates it, or deletes it.
func (w *reducedWalk) write() {
	c, key := w.collections[w.IntN(2)], listwatch.Key{Name: string(rune('a' + w.IntN(6)))}
	var err error
	if w.IntN(6) == 0 {
		_, err = c.Delete(w.Context(), key, listwatch.Preconditions{})
	} else {
		data := fmt.Appendf(nil, `{"metadata":{"name":%q},"shown":%d,"hidden":%d}`, key.Name, w.IntN(3), w.IntN(1000))
		if _, err = c.Replace(w.Context(), key, data); listwatch.CodeOf(err) == listwatch.NotFound {
			_, err = c.Create(w.Context(), data)
		}
	}
	if err != nil && listwatch.CodeOf(err) != listwatch.NotFound {
		w.Fatal(err)
	}
}

// stall delays the bytes of all connections until they are cut, which loses them.
func (w *reducedWalk) stall() { w.each(func(c *memnet.Conn) { c.Stall(true) }) }

func (w *reducedWalk) cut() {
	w.each((*memnet.Conn).Reset)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = nil
}

func (w *reducedWalk) each(f func(*memnet.Conn)) {
	w.mu.Lock()
	conns := slices.Clone(w.conns)
	w.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}

// compare compares the informers and what their handlers have seen with the collections.
func (w *reducedWalk) compare() {
	for n, c := range w.collections {
		page, err := c.List(w.Context(), listwatch.Query{})
		if err != nil {
			w.Fatal(err)
		}
		stored := map[listwatch.Key]string{}
		for _, o := range page.Items {
			have, ok := w.informers[n].Get(o.Key)
			switch {
			case !ok:
				w.Errorf("informer %d lacks %s", n, o.Data)
				continue
			case !w.projection.Empty() && bytes.Contains(have.Data, []byte("hidden")):
				w.Errorf("informer %d has %s, want it reduced", n, have.Data)
			case have.Version != o.Version && !w.projection.Hides(have, o):
				w.Errorf("informer %d has %s, want %s", n, have.Data, o.Data)
			}
			stored[o.Key] = string(have.Data)
		}
		if w.informers[n].Len() != len(stored) {
			w.Errorf("informer %d has %d objects, want %v", n, w.informers[n].Len(), slices.Collect(maps.Keys(stored)))
		}
		if diff := cmp.Diff(stored, w.seen[n]); diff != "" {
			w.Errorf("the handler of informer %d has seen another state (-stored +seen):\n%s", n, diff)
		}
	}
}
