package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/watchcache"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var things = listwatch.Description{APIVersion: "example.com/v1", Kind: "Thing", Fields: []string{"spec.color"}}

// thing returns an object with the given color as a label and in spec.color.
func thing(name, color string, v listwatch.Version) *listwatch.Object {
	data := fmt.Appendf(nil,
		`{"metadata":{"name":%q,"resourceVersion":"%d","labels":{"color":%q}},"spec":{"color":%[3]q}}`, name, v, color)
	o, err := listwatch.ParseObject(data)
	if err != nil {
		panic(err)
	}
	return o
}

// put returns a change that writes a thing, and remove returns a change that deletes a thing.
func put(name, color string, v listwatch.Version) watchcache.Change {
	return watchcache.Change{Object: thing(name, color, v)}
}

func remove(name string, v listwatch.Version) watchcache.Change {
	return watchcache.Change{Key: listwatch.Key{Name: name}, Version: v}
}

// A fixture is a cache whose owner is the test.
type fixture struct {
	*testing.T
	*watchcache.Cache
}

// open returns a cache with the things a and b at version 10.
func open(t *testing.T, o watchcache.Options) *fixture {
	t.Helper()
	f := &fixture{t, watchcache.New(things, o)}
	f.ok(f.Replace([]*listwatch.Object{thing("b", "red", 10), thing("a", "blue", 7)}, 10))
	return f
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) apply(changes ...watchcache.Change) {
	f.Helper()
	f.ok(f.Apply(changes...))
}

func (f *fixture) watch(q listwatch.Query) listwatch.Watcher {
	f.Helper()
	w, err := f.Watch(f.Context(), q)
	f.ok(err)
	f.Cleanup(func() { w.Close() })
	return w
}

// wantEvents reads one event for each description, and compares them in order. A description, such
// as "ADDED a 7", consists of the type, the name and the version.
func (f *fixture) wantEvents(w listwatch.Watcher, want ...string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 5*time.Minute)
	defer cancel()
	for i, text := range want {
		var next [1]listwatch.Event
		_, err := w.Next(ctx, next[:])
		if err != nil {
			f.Fatalf("event %d: got %v, want %s", i, err, text)
		}
		if got := describe(next[0]); got != text {
			f.Fatalf("event %d: got %s, want %s", i, got, text)
		}
	}
}

func describe(e listwatch.Event) string {
	if e.Object.Key.Name == "" {
		return fmt.Sprintf("%s %d", e.Type, e.Version)
	}
	return fmt.Sprintf("%s %s %d", e.Type, e.Object.Key.Name, e.Version)
}

// wantEnd reads w, which must fail with the code.
func (f *fixture) wantEnd(w listwatch.Watcher, code listwatch.Code) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 5*time.Minute)
	defer cancel()
	n, err := w.Next(ctx, make([]listwatch.Event, 1))
	if n != 0 || !errors.Is(err, code) {
		f.Errorf("got %d events, %v; want %v", n, err, code)
	}
}

// names lists the names of the selected objects.
func (f *fixture) names(q listwatch.Query) (names []string) {
	f.Helper()
	page, err := f.List(f.Context(), q)
	f.ok(err)
	for _, o := range page.Items {
		names = append(names, o.Key.Name)
	}
	return names
}
