package informer_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// The informers of a factory follow all their collections over one stream. They converge after cut
// connections, after lost history, and after a server that has started over.
func TestInformersShareOneStream(t *testing.T) { synctest.Test(t, testSharedStream) }

func testSharedStream(t *testing.T) {
	const collections = 5
	var db *memory.DB
	var all []*store.Collection
	openDB := func(start listwatch.Version) {
		db, all = memory.Open(memory.Options{StartVersion: start}), nil
		for i := range collections {
			c, err := db.Collection(store.CollectionSpec{Kind: fmt.Sprint("Thing", i)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
	}
	openDB(1000)
	wrap := func(h http.Handler) http.Handler {
		server, mux := h.(*watchserver.Server), http.NewServeMux()
		for i, c := range all {
			mux.HandleFunc(fmt.Sprint("/things", i), func(w http.ResponseWriter, r *http.Request) {
				server.Serve(w, r, watchserver.Endpoint{Source: c})
			})
		}
		mux.Handle("/watch", server.Union(mux))
		return mux
	}
	network := servertest.NewNetwork(t)
	server := network.Start("origin", all[0], servertest.Options{Wrap: wrap})

	var paths []string
	for i := range collections {
		paths = append(paths, fmt.Sprint("/things", i))
	}
	u := client.NewUnion("http://origin/watch", paths...)
	var dials atomic.Int64
	u.Remote.Backoff = listwatch.Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond}
	u.Remote.Network = transport.Network{Dial: func(ctx context.Context, kind, addr string) (net.Conn, error) {
		dials.Add(1)
		return network.Transport().Dial(ctx, kind, addr)
	}}
	defer u.Remote.Close()
	var f informer.Factory
	var informers []*informer.Informer[*listwatch.Object]
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, source := range u.Sources() {
		i, err := informer.Shared(&f, source, listwatch.Selection{}, func(i *informer.Informer[*listwatch.Object]) {
			i.Backoff = u.Remote.Backoff
		})
		if err != nil {
			t.Fatal(err)
		}
		i.Handle(informer.Handler[*listwatch.Object]{
			OnAdd:    func(*listwatch.Object, bool) { note() },
			OnUpdate: func(_, _ *listwatch.Object) { note() },
			OnDelete: func(informer.Deleted[*listwatch.Object]) { note() },
		}, nil)
		informers = append(informers, i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- u.Run(ctx) }() // both end with cancel
	go func() { ended <- f.Run(ctx) }()

	written := 0
	write := func(n int) {
		for range n {
			c := all[written%collections]
			if _, err := c.Create(ctx, fmt.Appendf(nil, `{"metadata":{"name":"n%d"}}`, written)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Delete(ctx, listwatch.Key{Name: fmt.Sprint("n", written-2*collections)},
				listwatch.Preconditions{}); err != nil && written >= 2*collections {
				t.Fatal(err)
			}
			written++
		}
	}
	// await waits until each informer has the objects of its collection.
	await := func(step string) {
		t.Helper()
		late := time.After(time.Minute)
		for n, i := range informers {
			for !sameObjects(t, all[n], i) {
				select {
				case <-changed:
				case <-late:
					t.Fatalf("%s: informer %d has %d objects, which are not those of its collection", step, n, i.Len())
				}
			}
		}
	}
	write(20)
	await("start")
	write(20)
	await("live")
	if n := len(server.WatchServer.Watches()); n != 1 || dials.Load() != 1 {
		t.Errorf("the server has %d watches after %d connections, want 1 for all informers", n, dials.Load())
	}

	network.Kill("origin")
	write(20)
	network.Start("origin", all[0], servertest.Options{Wrap: wrap})
	await("resume")

	network.Kill("origin")
	write(20)
	db.Compact()
	network.Start("origin", all[0], servertest.Options{Wrap: wrap})
	await("lost history")

	network.Kill("origin")
	openDB(500) // lower versions, in another epoch
	written = 0
	write(20)
	network.Start("origin", all[0], servertest.Options{Wrap: wrap})
	await("another database")

	cancel()
	for range 2 {
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run returned %v, want context.Canceled", err)
		}
	}
}

func sameObjects(t *testing.T, c *store.Collection, i *informer.Informer[*listwatch.Object]) bool {
	t.Helper()
	page, err := c.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	same := i.Len() == len(page.Items)
	for _, o := range page.Items {
		have, ok := i.Get(o.Key)
		same = same && ok && have.Version == o.Version
	}
	return same
}
