package harness

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

// Notification is what a handler of a cache is told of one object.
type Notification = informer.Change[*listwatch.Object]

// A Cache is a client's copy of a collection: an [informer.Informer], or another in its place.
type Cache interface {
	// Run keeps the copy up to date until ctx ends.
	Run(ctx context.Context) error
	// HasSynced reports whether the first state is there, and every handler has returned from it.
	HasSynced() bool
	// Tell registers a handler, which is called by one goroutine.
	Notify(handler func(Notification))
	// Objects returns the copy, in key order.
	Objects() []*listwatch.Object
}

// CacheOf returns i as a Cache.
func CacheOf(i *informer.Informer[*listwatch.Object]) Cache { return cache{i} }

type cache struct {
	*informer.Informer[*listwatch.Object]
}

// Notify implements Cache.
func (c cache) Notify(handler func(Notification)) {
	c.Handle(informer.Handler[*listwatch.Object]{
		OnAdd: func(o *listwatch.Object, initial bool) {
			handler(Notification{Type: informer.ChangeAdded, Key: o.Key, Version: o.Version, New: o, Initial: initial})
		},
		OnUpdate: func(old, o *listwatch.Object) {
			handler(Notification{Type: informer.ChangeUpdated, Key: o.Key, Version: o.Version, Old: old, New: o})
		},
		OnDelete: func(d informer.Deleted[*listwatch.Object]) {
			handler(Notification{Type: informer.ChangeDeleted, Key: d.Key, Version: d.Version, New: d.Value, FinalStateUnknown: d.FinalStateUnknown})
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

// A Copied env follows its collection with a cache, over connections that can be made to fail.
type Copied struct {
	*Env
	*Connections
	Cache Cache
}

// CopyCollection makes a cache of the collection, which runs until the case ends.
func (e *Env) CopyCollection() *Copied {
	e.Helper()
	wired, ws := e.WithConnections()
	c := &Copied{e, ws, wired.CacheOf(wired.RemoteWith(wired.Route, func(r *client.Remote) { r.Backoff = listwatch.Backoff{} }))}
	return c
}

// CacheOf returns the cache under test of a source. It does not run yet.
func (e *Env) CacheOf(source listwatch.Source) Cache {
	e.Use(InProcess)
	i := &informer.Informer[*listwatch.Object]{
		Source: source, Decode: func(o *listwatch.Object) (*listwatch.Object, error) { return o, nil },
	}
	if e.Target.Informer != nil {
		return e.Target.Informer(i)
	}
	return CacheOf(i)
}

// RunCache runs c until the case ends.
func (e *Env) RunCache(c Cache) {
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

// settleTime is longer than anything takes to come back from a fault that is over.
const settleTime = 5 * time.Minute

// Settle waits until nothing happens any more.
func (e *Env) Settle() { <-time.After(settleTime) }

// WantCopy compares a cache with a list.
func (e *Env) WantCopy(c Cache) {
	e.Helper()
	page, err := e.Remote(e.Route).List(e.Context(), listwatch.Query{})
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

// A NotificationLog is what a handler was told.
type NotificationLog struct {
	mu   sync.Mutex
	told []Notification
}

// Add appends a notification.
func (b *NotificationLog) Add(t Notification) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, t)
}

// Take returns what was told since the last call.
func (b *NotificationLog) Take() []Notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	told := b.told
	b.told = nil
	return told
}

// describeNotifications returns a line for each of all, in order of keys: "updated a", "deleted b: final state unknown".
func describeNotifications(all []Notification) []string {
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

// WantNotifications compares what a handler was told since the last call, in any order.
func (e *Env) WantNotifications(b *NotificationLog, want ...string) {
	e.Helper()
	if diff := cmp.Diff(want, describeNotifications(b.Take())); diff != "" {
		e.Errorf("what the handler was told (-want +got):\n%s", diff)
	}
}
