package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/watchcache"
)

// Another program may change several keys in one transaction, and so at one version. Some streams
// return these changes one by one. The relay must write all of them into its log at once.
func TestChangesOfOneVersionStayTogether(t *testing.T) {
	for _, name := range []string{"chunked", "h2", "websocket", "gorilla"} {
		for _, f := range []framing.Framer{framing.JSON{}, framing.CBORSeq{}} {
			for _, compress := range []bool{false, true} {
				for _, keys := range []int{3, 40, 100} {
					t.Run(fmt.Sprintf("%s/%T/compress=%v/%d", name, f, compress, keys), func(t *testing.T) {
						remote := &client.Remote{Framings: []framing.Framer{f}, Compress: compress}
						synctest.Test(t, func(t *testing.T) { changesOfOneVersion(t, remote, name, keys) })
					})
				}
			}
		}
	}
}

// changesOfOneVersion changes a number of keys at each version. It sets the URL, the Network and
// the Transports of upstream.
func changesOfOneVersion(t *testing.T, upstream *client.Remote, transportName string, keys int) {
	cache := watchcache.New(listwatch.Description{Kind: "Thing", APIVersion: "v1"}, watchcache.Options{})
	if err := cache.Replace(nil, 1); err != nil {
		t.Fatal(err)
	}
	s := servertest.Start(t, cache, servertest.Options{})
	upstream.URL, upstream.Network = s.URL("/things"), s.Network
	if transportName == "gorilla" {
		upstream.Transports = []transport.Client{&gorilla.Client{Network: s.Network}}
	} else {
		upstream.Transports = s.Clients(transportName)
	}
	defer upstream.Close()
	r := awaitReady(t, openRelay(t, upstream, relay.Options{BackfillVersions: -1, CheckInterval: -1}))
	w := testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAt, Version: 1})
	for v := listwatch.Version(2); v < 8; v++ {
		if err := cache.Apply(changesAt(t, v, keys)...); err != nil {
			t.Fatal(err)
		}
		for _, e := range testkit.Read(t, w, keys) {
			if e.Version != v {
				t.Fatalf("got an event of version %d, want %d", e.Version, v)
			}
		}
	}
}

// Large changes arrive one by one over any transport. Once the relay has seen two changes of one
// version, it waits for the second one.
func TestLateChangesAreExpectedAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := watchcache.New(listwatch.Description{Kind: "Thing", APIVersion: "v1"}, watchcache.Options{})
		if err := cache.Replace(nil, 1); err != nil {
			t.Fatal(err)
		}
		s := servertest.Start(t, cache, servertest.Options{})
		upstream := &client.Remote{URL: s.URL("/things"), Network: s.Network}
		defer upstream.Close()
		r := awaitReady(t, openRelay(t, upstream, relay.Options{BackfillVersions: -1, CheckInterval: -1}))
		var w listwatch.Watcher
		for v := listwatch.Version(2); v < 10; v++ {
			changes := changesAt(t, v, 3)
			for _, c := range changes {
				c.Object.Data = fmt.Appendf(nil, "%s,\"pad\":%q}", c.Object.Data[:len(c.Object.Data)-1],
					strings.Repeat("x", 40<<10))
			}
			if err := cache.Apply(changes...); err != nil {
				t.Fatal(err)
			}
			if w == nil {
				time.Sleep(time.Minute)
				w = testkit.Watch(t, r, listwatch.Query{})
			}
			testkit.Read(t, w, 3)
		}
	})
}

// changesAt returns a change of each of n keys, at version v.
func changesAt(t *testing.T, v listwatch.Version, n int) (changes []watchcache.Change) {
	for i := range n {
		data := fmt.Appendf(nil, `{"metadata":{"name":"thing-%d","resourceVersion":"%d"}}`, i, v)
		o, err := listwatch.ParseObject(data)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, watchcache.Change{Version: v, Object: o})
	}
	return changes
}
