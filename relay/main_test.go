package relay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// An origin is a collection to relay, together with its database.
type origin struct {
	testing.TB
	*store.Collection
	db    *memory.DB
	start listwatch.Version // the version of the empty database
}

func openOrigin(t testing.TB) *origin {
	t.Helper()
	db := memory.Open(memory.Options{})
	return &origin{t, openCollection(t, db, "Thing"), db, db.Version()}
}

func openCollection(t testing.TB, db *memory.DB, kind string) *store.Collection {
	t.Helper()
	return testkit.Must(
		db.Collection(store.CollectionSpec{Kind: kind, Namespaced: true, Fields: []string{"spec.color"}}))(t)
}

// put creates or replaces a thing in namespace default. Its color is a label and a field.
func (o *origin) put(name, color string) *listwatch.Object {
	o.Helper()
	data := fmt.Appendf(nil,
		`{"metadata":{"name":%q,"namespace":"default","labels":{"color":%q}},"spec":{"color":%[2]q,"big":9007199254740993}}`, name, color)
	return testkit.Put(o, o, data)
}

func (o *origin) remove(name string) {
	o.Helper()
	if _, err := o.Delete(context.Background(), listwatch.Key{Namespace: "default", Name: name},
		listwatch.Preconditions{}); err != nil {
		o.Fatal(err)
	}
}

// openRelay returns a relay of s that is closed at the end of the test.
func openRelay(t testing.TB, s listwatch.Source, o relay.Options) *relay.Relay {
	t.Helper()
	r := relay.Open(s, o)
	t.Cleanup(func() { r.Close() })
	return r
}

func mustList(t testing.TB, s listwatch.Source, q listwatch.Query) listwatch.Page {
	t.Helper()
	return testkit.Must(s.List(t.Context(), q))(t)
}

// awaitReady waits until r has a state and returns r.
func awaitReady(t testing.TB, r *relay.Relay) *relay.Relay {
	t.Helper()
	mustList(t, r, listwatch.Query{Start: listwatch.StartAny, Limit: 1})
	return r
}

// eventTimeout is the time after which a test that waits for an event fails.
const eventTimeout = 10 * time.Minute

// readToEnd reads w until it returns an error. It returns the number of events and the error.
func readToEnd(t testing.TB, w listwatch.Watcher) (events int, err error) {
	t.Helper()
	var batch [16]listwatch.Event
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	for {
		n, err := w.Next(ctx, batch[:])
		events += n
		if err != nil {
			return events, err
		}
	}
}

// formatEvent formats everything that a reader of e can see.
func formatEvent(e listwatch.Event) string {
	return fmt.Sprintf("%s %v %d %s", e.Type, e.Initial, e.Version, e.Object.Data)
}

// wantSameEvents fails the test if the two lists of events differ.
func wantSameEvents(t testing.TB, name string, want, got []listwatch.Event) {
	t.Helper()
	for i := range want {
		if formatEvent(want[i]) != formatEvent(got[i]) {
			t.Errorf("%s: event %d:\n got %s\nwant %s", name, i, formatEvent(got[i]), formatEvent(want[i]))
		}
	}
}

var (
	everything = listwatch.Query{Bookmarks: true}
	fromNow    = listwatch.Query{InitialEvents: listwatch.InitialEventsNo}
)
