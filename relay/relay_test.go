package relay_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/relay"
)

func testQueries(t testing.TB) map[string]listwatch.Query {
	t.Helper()
	red, err := listwatch.ParseLabelSelector("color=red")
	if err != nil {
		t.Fatal(err)
	}
	blue, err := listwatch.ParseFieldSelector("spec.color=blue")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]listwatch.Query{
		"everything": everything,
		"label":      {Selection: listwatch.Selection{Labels: red}, Bookmarks: true},
		"field":      {Selection: listwatch.Selection{Fields: blue}},
		"name":       {Selection: listwatch.Selection{Namespace: "default", Name: "b"}},
		"namespace":  {Selection: listwatch.Selection{Namespace: "elsewhere"}, Bookmarks: true},
	}
}

func TestRelaysShowTheEventsOfTheOrigin(t *testing.T) {
	for name, q := range testQueries(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openOrigin(t)
				o.put("a", "red")
				o.put("b", "blue")
				one := openRelay(t, o, relay.Options{})
				two := openRelay(t, one, relay.Options{})
				origin, direct, indirect := testkit.Watch(t, o, q), testkit.Watch(t, one, q), testkit.Watch(t, two, q)
				o.put("c", "red")
				o.put("a", "blue") // leaves one selection and enters another
				o.put("b", "red")
				o.remove("b")
				o.put("b", "blue")
				synctest.Wait()
				var want [64]listwatch.Event
				n, err := origin.Next(t.Context(), want[:])
				if q.Namespace == "elsewhere" && n != 1 || q.Namespace != "elsewhere" && n < 4 || err != nil {
					t.Fatalf("the origin sent %d events, error %v", n, err)
				}
				wantSameEvents(t, "relay", want[:n], testkit.Read(t, direct, n))
				wantSameEvents(t, "relay of a relay", want[:n], testkit.Read(t, indirect, n))
				wantSameLists(t, o, one, two, q)
			})
		})
	}
}

// wantSameLists compares lists of the origin with lists of the relays.
func wantSameLists(t *testing.T, o *origin, one, two *relay.Relay, q listwatch.Query) {
	t.Helper()
	want := mustList(t, o, q)
	for i, r := range []*relay.Relay{one, two} {
		got := mustList(t, r, q)
		if got.Version != want.Version || len(got.Items) != len(want.Items) {
			t.Errorf("relay %d: got %d objects at version %d, want %d at version %d", i, len(got.Items), got.Version,
				len(want.Items), want.Version)
			continue
		}
		for j := range want.Items {
			if string(got.Items[j].Data) != string(want.Items[j].Data) {
				t.Errorf("relay %d: got %s, want %s", i, got.Items[j].Data, want.Items[j].Data)
			}
		}
	}
	if got, want := one.Describe(), o.Describe(); got.Kind != want.Kind || got.Epoch != want.Epoch ||
		len(got.Fields) != len(want.Fields) {
		t.Errorf("Describe returned %+v, want %+v", got, want)
	}
}

func TestRelaySharesObjectBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		first := o.put("a", "red")
		r := awaitReady(t, openRelay(t, o, relay.Options{Fields: []string{"spec.color"}, BackfillVersions: -1}))
		got := mustList(t, r, listwatch.Query{}).Items[0]
		if &got.Data[0] != &first.Data[0] {
			t.Error("the relay has copied the object")
		}
		if got.Fields["spec.color"] != "red" {
			t.Errorf("the fields are %v, want spec.color", got.Fields)
		}
	})
}

func TestNewestReadsSeeAcknowledgedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		r := openRelay(t, o, relay.Options{})
		for range 200 {
			written := o.put("a", "red")
			if page := mustList(t, r, listwatch.Query{}); page.Version < written.Version ||
				page.Items[0].Version < written.Version {
				t.Fatalf("List returned version %d after a write of version %d", page.Version, written.Version)
			}
			written = o.put("a", "blue")
			w := testkit.Watch(t, r, everything)
			if e := testkit.Read(t, w, 1)[0]; e.Version < written.Version {
				t.Fatalf("the watch begins at version %d after a write of version %d", e.Version, written.Version)
			}
			got, err := r.Get(t.Context(), written.Key)
			if err != nil || got.Version != written.Version {
				t.Fatalf("Get returned %v, error %v; want version %d", got, err, written.Version)
			}
			w.Close()
		}
	})
}

func TestWritesToOtherCollectionsAdvanceRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := openCollection(t, o.db, "Other")
		r := awaitReady(t, openRelay(t, o, relay.Options{}))
		w := testkit.Watch(t, r, fromNow)
		if _, err := other.Create(t.Context(), []byte(`{"metadata":{"name":"x","namespace":"default"}}`)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if page := mustList(t, r, listwatch.Query{}); page.Version != o.db.Version() {
			t.Errorf("List returned version %d, want %d", page.Version, o.db.Version())
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("List took %v, want 0", took)
		}
		synctest.Wait()
		if at := w.(listwatch.Poller).Progress().Version; at != o.db.Version() {
			t.Errorf("the watcher is at version %d, want %d", at, o.db.Version())
		}
	})
}

func TestFutureVersionIsNotYetAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		r := awaitReady(t, openRelay(t, o, relay.Options{}))
		q := listwatch.Query{Start: listwatch.StartAt, Version: o.db.Version() + 1}
		start := time.Now()
		_, err := r.List(t.Context(), q)
		if took := time.Since(start).Round(time.Second); !errors.Is(err, listwatch.NotYet) || took != 3*time.Second {
			t.Errorf("List: got error %v after %v, want NotYet after 3 s", err, took)
		}
		w := testkit.Watch(t, r, q)
		if _, err := readToEnd(t, w); !errors.Is(err, listwatch.NotYet) {
			t.Errorf("Watch: got error %v, want NotYet", err)
		}
		w = testkit.Watch(t, r, q)
		o.put("a", "red")
		o.put("b", "red")
		if e := testkit.Read(t, w, 1)[0]; e.Object.Key.Name != "b" {
			t.Errorf("got %v, want b: it was written after the version", e.Object.Key)
		}
	})
}

func TestCloseEndsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		r := awaitReady(t, relay.Open(o, relay.Options{}))
		lagging, future := testkit.Watch(t, r, fromNow),
			testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAt, Version: 1 << 62})
		o.put("a", "red")
		synctest.Wait()
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if n, err := readToEnd(t, lagging); n != 1 || err != io.EOF {
			t.Errorf("the watcher got %d events and error %v, want 1 and io.EOF", n, err)
		}
		if _, err := readToEnd(t, future); err != io.EOF {
			t.Errorf("the watcher from a future version got error %v, want io.EOF", err)
		}
		if _, err := r.Watch(t.Context(), everything); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("Watch of a closed relay: got error %v, want Unavailable", err)
		}
		if _, err := r.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("List of a closed relay: got error %v, want Unavailable", err)
		}
	})
}

func TestBackfillServesOldVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		for i := range 100 {
			o.put("a", fmt.Sprint("red", i))
			o.put("b", fmt.Sprint("blue", i))
		}
		from := mustList(t, o, listwatch.Query{}).Version
		want := testkit.Watch(t, o, listwatch.Query{Start: listwatch.StartAt, Version: from})
		o.remove("a")
		o.put("a", "blue")
		late := awaitReady(t, openRelay(t, o, relay.Options{}))
		got := testkit.Watch(t, late, listwatch.Query{Start: listwatch.StartAt, Version: from})
		o.put("b", "red")
		wantSameEvents(t, "watch from before the start of the relay", testkit.Read(t, want, 3), testkit.Read(t, got, 3))
		if page := mustList(t, late,
			listwatch.Query{
				Start: listwatch.StartAt, Version: from,
				Match: listwatch.MatchExact,
			}); page.Version != from || len(page.Items) != 2 {
			t.Errorf("List of an old version returned %d objects at version %d, want 2 at version %d", len(page.Items),
				page.Version, from)
		}

		without := awaitReady(t, openRelay(t, o, relay.Options{BackfillVersions: -1}))
		if _, err := without.Watch(t.Context(),
			listwatch.Query{Start: listwatch.StartAt, Version: from}); !errors.Is(err, listwatch.Expired) {
			t.Errorf("Watch of a relay without a backfill: got error %v, want Expired", err)
		}
	})
}

func TestFirstStateIsNewestDespiteBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		for i := range 3000 {
			o.put("a", fmt.Sprint("red", i))
		}
		newest := o.put("a", "blue")
		r := openRelay(t, o, relay.Options{})
		if page := mustList(t, r, listwatch.Query{Start: listwatch.StartAny}); page.Version < newest.Version {
			t.Errorf("the first list has version %d, want at least %d", page.Version, newest.Version)
		}
	})
}
