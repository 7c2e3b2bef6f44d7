package cases

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
)

// Told is what a handler of a cache is told of one object.
type Told = informer.Change[*listwatch.Object]

// A Cache is a client's copy of a collection: an [informer.Informer], or another in its place.
type Cache interface {
	// Run keeps the copy up to date until ctx ends.
	Run(ctx context.Context) error
	// HasSynced reports whether the first state is there, and every handler has returned from it.
	HasSynced() bool
	// Tell registers a handler, which is called by one goroutine.
	Tell(handler func(Told))
	// Objects returns the copy, in key order.
	Objects() []*listwatch.Object
}

// CacheOf returns i as a Cache.
func CacheOf(i *informer.Informer[*listwatch.Object]) Cache { return cache{i} }

type cache struct {
	*informer.Informer[*listwatch.Object]
}

// Tell implements Cache.
func (c cache) Tell(handler func(Told)) {
	c.Handle(informer.Handler[*listwatch.Object]{
		OnAdd: func(o *listwatch.Object, initial bool) {
			handler(Told{Type: informer.ChangeAdded, Key: o.Key, Version: o.Version, New: o, Initial: initial})
		},
		OnUpdate: func(old, o *listwatch.Object) {
			handler(Told{Type: informer.ChangeUpdated, Key: o.Key, Version: o.Version, Old: old, New: o})
		},
		OnDelete: func(d informer.Deleted[*listwatch.Object]) {
			handler(Told{Type: informer.ChangeDeleted, Key: d.Key, Version: d.Version, New: d.Value, FinalStateUnknown: d.FinalStateUnknown})
		},
	}, nil)
}

// Objects implements Cache.
func (c cache) Objects() []*listwatch.Object {
	var all []*listwatch.Object
	for _, o := range c.Snapshot().All() {
		all = append(all, o)
	}
	return all
}

// A copied env follows its collection with a cache, over connections that can be made to fail.
type copied struct {
	*env
	*wires
	cache Cache
}

// copies makes a cache of the collection, which runs until the case ends.
func (e *env) copies() *copied {
	e.Helper()
	wired, ws := e.wired()
	c := &copied{e, ws, wired.cacheOf(wired.remoteWith(wired.site, func(r *client.Remote) { r.Backoff = listwatch.Backoff{} }))}
	return c
}

// cacheOf returns the cache under test of a source. It does not run yet.
func (e *env) cacheOf(source listwatch.Source) Cache {
	e.use(InProcess)
	i := &informer.Informer[*listwatch.Object]{
		Source: source, Decode: func(o *listwatch.Object) (*listwatch.Object, error) { return o, nil },
	}
	if e.target.Informer != nil {
		return e.target.Informer(i)
	}
	return CacheOf(i)
}

// runs runs c until the case ends.
func (e *env) runs(c Cache) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Run(ctx)
	}()
	e.Cleanup(func() {
		cancel()
		<-ended
	})
}

// settles is longer than anything takes to come back from a fault that is over.
const settles = 5 * time.Minute

// settle waits until nothing happens any more.
func (e *env) settle() { <-time.After(settles) }

// wantCopy compares a cache with a list.
func (e *env) wantCopy(c Cache) {
	e.Helper()
	page, err := e.remote(e.site).List(e.Context(), listwatch.Query{})
	if err != nil {
		e.Fatal(err)
	}
	line := func(o *listwatch.Object) string { return fmt.Sprintf("%s@%d %s", o.Key, o.Version, o.Data) }
	var want, got []string
	for _, o := range page.Items {
		want = append(want, line(o))
	}
	for _, o := range c.Objects() {
		got = append(got, line(o))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		e.Errorf("the store differs from a list at %d (-list +store):\n%s", page.Version, diff)
	}
}

// A book is what a handler was told.
type book struct {
	mu   sync.Mutex
	told []Told
}

func (b *book) tell(t Told) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, t)
}

// take returns what was told since the last call.
func (b *book) take() []Told {
	b.mu.Lock()
	defer b.mu.Unlock()
	told := b.told
	b.told = nil
	return told
}

// spelt returns a line for each of all, in order of keys: "updated a", "deleted b: final state unknown".
func spelt(all []Told) []string {
	var lines []string
	for _, t := range all {
		line := t.Type.String() + " " + t.Key.Name
		if t.FinalStateUnknown {
			line += ": final state unknown"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// wantTold compares what a handler was told since the last call, in any order.
func (e *env) wantTold(b *book, want ...string) {
	e.Helper()
	if diff := cmp.Diff(want, spelt(b.take())); diff != "" {
		e.Errorf("what the handler was told (-want +got):\n%s", diff)
	}
}
