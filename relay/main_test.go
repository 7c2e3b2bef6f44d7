package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// An origin is a database with the collection that is relayed.
type origin struct {
	testing.TB
	*store.Collection
	db    *memory.DB
	start listwatch.Version // of the empty database
}

func openOrigin(t testing.TB) *origin {
	t.Helper()
	db := memory.Open(memory.Options{})
	return &origin{t, collection(t, db, "Thing"), db, db.Version()}
}

func collection(t testing.TB, db *memory.DB, kind string) *store.Collection {
	t.Helper()
	c, err := db.Collection(store.CollectionSpec{Kind: kind, Namespaced: true, Fields: []string{"spec.color"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put creates or replaces a thing of namespace default, with a color as its label and its field.
func (o *origin) put(name, color string) *listwatch.Object {
	o.Helper()
	data := fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"default","labels":{"color":%q}},"spec":{"color":%[2]q,"big":9007199254740993}}`, name, color)
	object, err := o.Create(context.Background(), data)
	if errors.Is(err, listwatch.AlreadyExists) {
		object, err = o.Replace(context.Background(), listwatch.Key{Namespace: "default", Name: name}, data)
	}
	if err != nil {
		o.Fatal(err)
	}
	return object
}

func (o *origin) remove(name string) {
	o.Helper()
	if _, err := o.Delete(context.Background(), listwatch.Key{Namespace: "default", Name: name}, store.Preconditions{}); err != nil {
		o.Fatal(err)
	}
}

// open returns a relay of s that ends with the test.
func open(t testing.TB, s listwatch.Source, o relay.Options) *relay.Relay {
	t.Helper()
	r := relay.Open(s, o)
	t.Cleanup(func() { r.Close() })
	return r
}

func list(t testing.TB, s listwatch.Source, q listwatch.Query) listwatch.Page {
	t.Helper()
	page, err := s.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// ready returns once r has a state.
func ready(t testing.TB, r *relay.Relay) *relay.Relay {
	t.Helper()
	list(t, r, listwatch.Query{Start: listwatch.Any, Limit: 1})
	return r
}

func watch(t testing.TB, s listwatch.Source, q listwatch.Query) listwatch.Watcher {
	t.Helper()
	w, err := s.Watch(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// next returns the next n events.
func next(t testing.TB, w listwatch.Watcher, n int) []listwatch.Event {
	t.Helper()
	events := make([]listwatch.Event, n)
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	for got := 0; got < n; {
		k, err := w.Next(ctx, events[got:])
		if err != nil {
			t.Fatalf("after %d of %d events: %v", got, n, err)
		}
		got += k
	}
	return events
}

// long is more than anything takes, in a bubble's time.
const long = 10 * time.Minute

// end reads w to its end, and returns that.
func end(t testing.TB, w listwatch.Watcher) (events int, err error) {
	t.Helper()
	var batch [16]listwatch.Event
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	for {
		n, err := w.Next(ctx, batch[:])
		events += n
		if err != nil {
			return events, err
		}
	}
}

// line spells e so that two that are alike are spelled alike.
func line(e listwatch.Event) string {
	return fmt.Sprintf("%s %v %d %s", e.Type, e.Initial, e.Version, e.Object.Data)
}

// equal fails t unless both watchers bring the same n events.
func equal(t testing.TB, what string, want, got []listwatch.Event) {
	t.Helper()
	for i := range want {
		if line(want[i]) != line(got[i]) {
			t.Errorf("%s: event %d:\n got %s\nwant %s", what, i, line(got[i]), line(want[i]))
		}
	}
}

var (
	everything = listwatch.Query{Bookmarks: true}
	fromNow    = listwatch.Query{InitialEvents: listwatch.No}
)
