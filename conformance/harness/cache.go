package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
)

// Notification is one call of an event handler.
type Notification = informer.Change[*listwatch.Object]

// A Cache is a client's copy of a collection: an [informer.Informer] or an implementation
// that the target substitutes for it.
type Cache interface {
	// Run keeps the copy up to date until ctx ends.
	Run(ctx context.Context) error
	// HasSynced reports whether the initial state is stored and every handler has processed
	// it.
	HasSynced() bool
	// Notify registers a handler. One goroutine makes all calls of handler.
	Notify(handler func(Notification))
	// Objects returns the objects of the copy, ordered by key.
	Objects() []*listwatch.Object
}

// NewCache returns an informer of this module for source, with the given backoff.
func NewCache(source listwatch.Source, backoff listwatch.Backoff) Cache {
	return cache{&informer.Informer[*listwatch.Object]{
		Source: source, Backoff: backoff,
		Decode: func(o *listwatch.Object) (*listwatch.Object, error) { return o, nil },
	}}
}

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
			handler(Notification{
				Type: informer.ChangeDeleted, Key: d.Key, Version: d.Version, New: d.Value,
				FinalStateUnknown: d.FinalStateUnknown,
			})
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

// CachedEnv is an Env with a cache of its collection. The case can break the connections of
// the cache through the embedded Connections.
type CachedEnv struct {
	*Env
	*Connections
	Cache Cache
}

// CopyCollection returns an Env with a cache of the collection. The cache is not running
// yet; call RunCache.
func (e *Env) CopyCollection() *CachedEnv {
	e.Helper()
	wired, ws := e.WithConnections()
	source := wired.RemoteWith(wired.Route, func(r *client.Remote) { r.Backoff = listwatch.Backoff{} })
	if e.Target.OwnClock {
		w, err := source.Watch(e.Context(), listwatch.Query{Bookmarks: true})
		if IsMissing(err) {
			e.Skipf("%v", err)
		}
		if err == nil {
			w.Close()
		}
	}
	return &CachedEnv{e, ws, wired.CacheOf(source)}
}

// CacheOf returns the cache under test for a source. The cache is not running yet.
func (e *Env) CacheOf(source listwatch.Source) Cache {
	e.Use(InProcess)
	if e.Target.Informer != nil {
		return e.Target.Informer(source)
	}
	return NewCache(source, listwatch.Backoff{})
}

// RunCache runs c until the case ends.
func (e *Env) RunCache(c Cache) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx)
	}()
	e.Cleanup(func() {
		cancel()
		<-done
	})
}

// settleTime is longer than any recovery takes after a fault has ended.
const settleTime = 5 * time.Minute

// Settle waits for longer than any recovery takes, so that all work in progress completes. In real
// time it does not wait; see WantCopy.
func (e *Env) Settle() { e.Pause(settleTime, 0) }

// WantCopy reports an error if the objects in c differ from a list of the collection. In real time
// it waits for up to Patience until they are equal.
func (e *Env) WantCopy(c Cache) {
	e.Helper()
	lists := e.Remote(e.Route)
	if e.Target.OwnClock { // the control hook has no lists
		lists = e.Internals.Source
	}
	for deadline := time.Now().Add(e.Either(0, e.Patience())); ; <-time.After(10 * time.Millisecond) {
		page, err := lists.List(e.Context(), listwatch.Query{})
		if err != nil {
			e.Fatal(err)
		}
		diff := e.compareCopy(page, c)
		if diff != "" && time.Now().Before(deadline) {
			continue
		}
		if diff != "" {
			e.Errorf("the cache differs from a list at version %d (-list +cache):\n%s", page.Version, diff)
		}
		return
	}
}

// compareCopy returns the differences between a list and a cache. A client in another language may
// decode an object and encode it again.
func (e *Env) compareCopy(page listwatch.Page, c Cache) string {
	line := func(o *listwatch.Object) string {
		data := o.Data
		if e.Target.OwnClock {
			data, _ = json.Marshal(DecodeJSON(data)) // decoded from JSON
		}
		return fmt.Sprintf("%s@%d %s", o.Key, o.Version, data)
	}
	var want, got []string
	for _, o := range page.Items {
		want = append(want, line(o))
	}
	for _, o := range c.Objects() {
		got = append(got, line(o))
	}
	return cmp.Diff(want, got)
}

// A NotificationLog collects the notifications of a handler.
type NotificationLog struct {
	mu            sync.Mutex
	notifications []Notification
}

// Add appends a notification.
func (n *NotificationLog) Add(t Notification) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notifications = append(n.notifications, t)
}

// Take returns the notifications since the last call.
func (n *NotificationLog) Take() []Notification {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.notifications
	n.notifications = nil
	return taken
}

// describeNotifications returns one sorted line per notification, such as "updated a" or
// "deleted b: final state unknown".
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

// WantNotifications compares want, which must be sorted, with the sorted notifications since the
// previous call.
func (e *Env) WantNotifications(l *NotificationLog, want ...string) {
	e.Helper()
	if diff := cmp.Diff(want, describeNotifications(l.Take())); diff != "" {
		e.Errorf("notifications of the handler (-want +got):\n%s", diff)
	}
}
