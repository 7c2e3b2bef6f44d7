package informer_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
)

// countedRemote returns a client of the server "origin". The bytes that it reads are added to read.
func countedRemote(t *testing.T, network *servertest.Network, read *atomic.Int64) *client.Remote {
	r := &client.Remote{
		URL: "http://origin/things", Backoff: listwatch.Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond},
		Network: network.CountingTransport(read),
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// A server is killed, and its objects change while its clients are disconnected. After its restart
// it has no history. An informer, and a relay with an informer, receive only the changes and not
// the whole state.
func TestRestartCostsWhatChanged(t *testing.T) {
	const objects, size = 1000, 2000
	path := filepath.Join(t.TempDir(), "things.db")
	var db *bolt.DB
	open := func() *store.Collection {
		var err error
		if db, err = bolt.Open(path, bolt.Options{History: listwatch.Retention{Bytes: 1}}); err != nil {
			t.Fatal(err)
		}
		c, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	put := func(c *store.Collection, n int, text string) listwatch.Version {
		data := fmt.Appendf(nil, `{"metadata":{"name":"o%d"},"text":%q}`, n, strings.Repeat(text, size))
		o, err := c.Replace(t.Context(), listwatch.Key{Name: fmt.Sprint("o", n)}, data)
		if listwatch.CodeOf(err) == listwatch.NotFound {
			o, err = c.Create(t.Context(), data)
		}
		if err != nil {
			t.Fatal(err)
		}
		return o.Version
	}
	things := open()
	last := listwatch.Version(0)
	for n := range objects {
		last = put(things, n, "x")
	}
	network := servertest.NewNetwork(t)
	network.Start("origin", things, servertest.Options{})
	var read atomic.Int64
	relayed := relay.Open(countedRemote(t, network, &read), relay.Options{BackfillVersions: -1})
	defer relayed.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var informers []*informer.Informer[*listwatch.Object]
	for _, source := range []listwatch.Source{countedRemote(t, network, &read), relayed} {
		i := &informer.Informer[*listwatch.Object]{Source: source}
		informers = append(informers, i)
		go func() { _ = i.Run(ctx) }() // until cancel
	}
	// WaitForVersion would probe, and might list, on a machine that is slow.
	await := func(n int, v listwatch.Version) int64 {
		for _, i := range informers {
			err := i.WaitFor(ctx, listwatch.Key{Name: fmt.Sprint("o", n)}, func(o *listwatch.Object, ok bool) bool {
				return ok && o.Version >= v
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return read.Swap(0)
	}
	whole := await(objects-1, last)

	network.Kill("origin")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	things = open()
	defer func() { _ = db.Close() }()
	put(things, 1, "y")
	if _, err := things.Delete(t.Context(), listwatch.Key{Name: "o2"}, listwatch.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	last = put(things, 3, "z")
	network.Start("origin", things, servertest.Options{})
	difference := await(3, last)
	t.Logf("%d bytes for the whole state, %d for the difference, both twice", whole, difference)
	if difference > 2*(2*size+4000) {
		t.Errorf("the restart cost %d bytes, want at most two changed objects for each client", difference)
	}
	for _, i := range informers {
		if n := i.Len(); n != objects-1 {
			t.Errorf("an informer has %d objects, want %d", n, objects-1)
		}
	}
}

// An informer with a copy ends, and so does its server. Then objects change. Both start again, and
// the server has no history.
func TestRestartedInformerReceivesOnlyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, network := newPersistFixture(t), servertest.NewNetwork(t)
		for n := range 1000 {
			f.put(fmt.Sprint("o", n), 1)
		}
		var read atomic.Int64
		start := func() (objects int, bytes int64) {
			network.Start("origin", f.things, servertest.Options{})
			remote := countedRemote(t, network, &read)
			objects = len(run[persisted](f, remote, nothing))
			remote.Close()
			network.Kill("origin")
			return objects, read.Swap(0)
		}
		_, whole := start()
		f.put("a", 2)
		f.remove("b")
		f.db.Compact()
		objects, difference := start()
		if objects != 1002 || difference > 4000 || whole < 50*difference {
			t.Errorf("got %d objects by %d bytes, and before the restart %d bytes; want only what changed", objects,
				difference, whole)
		}
		t.Logf("%d bytes for the whole state, %d for the difference", whole, difference)
	})
}
