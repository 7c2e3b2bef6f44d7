package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// A unionServer serves two collections and their unions at /watch.
type unionServer struct {
	*testing.T
	*servertest.Server
	db     *memory.DB
	parts  [2]*store.Collection
	writes int

	mu       sync.Mutex
	requests []url.Values // guarded by mu
}

func startUnionServer(t *testing.T) *unionServer {
	t.Helper()
	u := &unionServer{T: t, db: memory.Open(memory.Options{})}
	mux := http.NewServeMux()
	for i := range u.parts {
		c, err := u.db.Collection(store.CollectionSpec{Kind: fmt.Sprint("Thing", i)})
		if err != nil {
			t.Fatal(err)
		}
		u.parts[i] = c
		mux.HandleFunc(fmt.Sprint("/things", i), func(w http.ResponseWriter, r *http.Request) {
			u.WatchServer.Serve(w, r, watchserver.Endpoint{Source: c})
		})
	}
	u.Server = servertest.Start(t, u.parts[0], servertest.Options{Wrap: func(server http.Handler) http.Handler {
		union := server.(*watchserver.Server).Union(mux)
		mux.HandleFunc("/watch", func(w http.ResponseWriter, r *http.Request) {
			u.mu.Lock()
			u.requests = append(u.requests, r.URL.Query())
			u.mu.Unlock()
			union.ServeHTTP(w, r)
		})
		return mux
	}})
	return u
}

// run runs a Union of both collections until the end of the test.
func (u *unionServer) run(over string, set func(*Union)) *Union {
	c := NewUnion(u.URL("/watch"), "/things0", "/things1")
	c.Remote.Network, c.Remote.Transports = u.Network, u.Clients(over)
	set(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { // ends with the test
		defer close(ended)
		_ = c.Run(ctx)
	}()
	u.Cleanup(func() {
		cancel()
		<-ended
		_ = c.Remote.Close()
	})
	return c
}

func (u *unionServer) put(part int, name string) {
	u.Helper()
	u.writes++
	data := fmt.Appendf(nil, `{"metadata":{"name":%q},"write":%d}`, name, u.writes)
	testkit.Put(u, u.parts[part], data)
}

// wantObjects waits until the Sources of c have the objects of the server.
func (u *unionServer) wantObjects(c *Union) {
	u.Helper()
	for i, source := range c.Sources() {
		want, err := u.parts[i].List(context.Background(), listwatch.Query{})
		if err != nil {
			u.Fatal(err)
		}
		var got listwatch.Page
		for range 100 {
			if got, err = source.List(context.Background(), listwatch.Query{}); err == nil &&
				len(got.Items) == len(want.Items) {
				break
			}
			<-time.After(time.Second)
		}
		if err != nil || len(got.Items) != len(want.Items) {
			u.Fatalf("part %d has %d objects, %v, want %d", i, len(got.Items), err, len(want.Items))
		}
		for n, o := range got.Items {
			if o.Key != want.Items[n].Key || o.Version != want.Items[n].Version {
				u.Errorf("part %d has %v at %d, want %v at %d", i, o.Key, o.Version, want.Items[n].Key,
					want.Items[n].Version)
			}
		}
	}
}

func TestUnionRequestsTheDifference(t *testing.T) {
	forEachTransport(t, func(t *testing.T, over string) {
		u := startUnionServer(t)
		for i := range 20 {
			u.put(i%2, fmt.Sprint("n", i))
		}
		c := u.run(over, func(*Union) {})
		u.wantObjects(c)
		u.ResetConns()
		for part, gone := range []string{"n2", "n3"} {
			if _, err := u.parts[part].Delete(t.Context(), listwatch.Key{Name: gone},
				listwatch.Preconditions{}); err != nil {
				t.Fatal(err)
			}
		}
		u.put(0, "n4")
		u.put(1, "new")
		u.db.Compact()
		synctest.Wait()
		time.Sleep(time.Minute)
		u.wantObjects(c)
		u.mu.Lock()
		defer u.mu.Unlock()
		if last := u.requests[len(u.requests)-1]; last.Get("initialEventsSince") == "" {
			t.Errorf("the last request has %v, want a difference", last)
		}
		watches := u.WatchServer.Watches()
		if len(watches) != 1 || watches[0].Events > 6 {
			t.Errorf("the server has the watches %+v, want one with four changes and at most two bookmarks", watches)
		}
	})
}

func TestUnionConflates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := startUnionServer(t)
		c := u.run("chunked", func(c *Union) { c.Conflate = 10 * time.Second })
		u.put(0, "a")
		u.wantObjects(c)
		time.Sleep(time.Minute)
		w, err := c.Sources()[0].Watch(t.Context(), listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		u.put(0, "a")
		for range 100 {
			u.put(0, "a")
			u.put(1, "b")
		}
		time.Sleep(time.Minute)
		u.wantObjects(c)
		events := make([]listwatch.Event, 200)
		if n, err := w.Next(t.Context(), events); n > 2 || err != nil {
			t.Errorf("got %d events of 101 writes, %v, want at most two", n, err)
		}
	})
}
