package watchcache_test

import (
	"math/rand/v2"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/collectiontest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchcache"
)

// feed brings cache to the state of things, by a Replace or by the changes since its version.
func feed(t *testing.T, rng *rand.Rand, cache *watchcache.Cache, things *store.Collection) {
	t.Helper()
	page, err := things.List(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if cache.Version() == 0 || rng.IntN(3) == 0 {
		if err := cache.Replace(page.Items, page.Version); err != nil {
			t.Fatal(err)
		}
		return
	}
	w, err := things.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: cache.Version()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for cache.Version() < page.Version {
		var batch [1]listwatch.Event
		if _, err := w.Next(t.Context(), batch[:]); err != nil {
			t.Fatal(err)
		}
		change := watchcache.Change{Version: batch[0].Version, Key: batch[0].Object.Key}
		if batch[0].Type != listwatch.Deleted {
			change.Object = batch[0].Object
		}
		if err := cache.Apply(change); err != nil {
			t.Fatal(err)
		}
	}
}

// Another replica of the cache takes part, so that readers have states that one of them skipped.
func TestReadersOfCachesResumeByDifferences(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
		Kind: "Thing", Namespaced: true, Fields: []string{"spec.node"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var replicas [2]*watchcache.Cache
	for i := range replicas {
		replicas[i] = watchcache.New(things.Describe(), watchcache.Options{History: listwatch.Retention{Bytes: 1}})
	}
	readers := collectiontest.NewReaders(t)
	for range 300 {
		for range 1 + rng.IntN(5) {
			collectiontest.Write(t, rng, things)
		}
		cache := replicas[rng.IntN(len(replicas))]
		feed(t, rng, cache, things)
		readers.Resume(rng, cache)
	}
	if readers.Differences < 500 || readers.Whole < 20 {
		t.Errorf("%d differences and %d whole states: the history covered too little", readers.Differences,
			readers.Whole)
	}
	t.Logf("%d differences, %d whole states", readers.Differences, readers.Whole)
}
