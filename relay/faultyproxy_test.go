package relay_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/relay"
)

// keysOf returns the names of the objects of s, in any state that it has.
func keysOf(t *testing.T, s listwatch.Source) (names string) {
	t.Helper()
	page, err := s.List(t.Context(), listwatch.Query{Start: listwatch.StartAny})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Items {
		names += o.Key.Name
	}
	return names
}

// A relay and an informer must not stay stale because a proxy hides that their history has expired.
func TestHiddenExpiryLeavesNoFollowerStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, n, proxy := openOrigin(t), servertest.NewNetwork(t), new(servertest.FaultyProxy)
		server := n.Start("origin", o, servertest.Options{Wrap: proxy.Wrap})
		for _, name := range []string{"a", "b", "c"} {
			o.put(name, "red")
		}
		upstream := newRemote(n, "origin")
		defer upstream.Close()
		r := awaitReady(t, openRelay(t, upstream, relay.Options{}))
		ctx, cancel := context.WithCancel(t.Context())
		i := &informer.Informer[*listwatch.Object]{Source: upstream}
		ended := make(chan error, 1)
		go func() { ended <- i.Run(ctx) }()
		synctest.Wait()

		proxy.Refuses.Store(true)
		proxy.HidesExpiry.Store(true)
		server.ResetConns()
		synctest.Wait()
		if _, err := o.Delete(t.Context(), listwatch.Key{Namespace: "default", Name: "b"},
			listwatch.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		o.put("d", "red")
		o.db.Compact()
		proxy.Refuses.Store(false)
		time.Sleep(3 * time.Minute)
		if got := keysOf(t, r); got != "acd" {
			t.Errorf("the relay has the objects %s, want acd", got)
		}
		if _, ok := i.Get(listwatch.Key{Namespace: "default", Name: "d"}); i.Len() != 3 || !ok {
			t.Errorf("the informer has %d objects, and d: %t, want a, c and d", i.Len(), ok)
		}
		cancel()
		<-ended
	})
}

// A proxy that drops bookmarks also drops the end of the initial events.
func TestDroppedBookmarksDelayAFollowerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, n, proxy := openOrigin(t), servertest.NewNetwork(t), new(servertest.FaultyProxy)
		proxy.DropsBookmarks.Store(true)
		n.Start("origin", o, servertest.Options{Wrap: proxy.Wrap})
		o.put("a", "red")
		upstream := newRemote(n, "origin")
		defer upstream.Close()
		ctx, cancel := context.WithCancel(t.Context())
		i := &informer.Informer[*listwatch.Object]{Source: upstream}
		ended := make(chan error, 1)
		go func() { ended <- i.Run(ctx) }()
		for range 90 {
			o.put("a", "blue")
			o.put("a", "red")
			time.Sleep(2 * time.Second)
		}
		if !i.HasSynced() || proxy.Lists.Load() == 0 {
			t.Errorf("after three minutes with changes: synced %t, %d lists", i.HasSynced(), proxy.Lists.Load())
		}
		cancel()
		<-ended
	})
}
