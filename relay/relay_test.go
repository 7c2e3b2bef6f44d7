package relay_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/relay"
)

func selections(t testing.TB) map[string]listwatch.Query {
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
		"label":      {Labels: red, Bookmarks: true},
		"field":      {Fields: blue},
		"name":       {Namespace: "default", Name: "b"},
		"namespace":  {Namespace: "elsewhere", Bookmarks: true},
	}
}

func TestARelayIsInvisible(t *testing.T) {
	for name, q := range selections(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := openOrigin(t)
				o.put("a", "red")
				o.put("b", "blue")
				one := open(t, o, relay.Options{})
				two := open(t, one, relay.Options{})
				here, near, far := watch(t, o, q), watch(t, one, q), watch(t, two, q)
				o.put("c", "red")
				o.put("a", "blue") // leaves one selection, and enters another
				o.put("b", "red")
				o.remove("b")
				o.put("b", "blue")
				synctest.Wait()
				var want [64]listwatch.Event
				n, err := here.Next(t.Context(), want[:])
				if q.Namespace == "elsewhere" && n != 1 || q.Namespace != "elsewhere" && n < 4 || err != nil {
					t.Fatalf("got %d events of the origin, %v", n, err)
				}
				equal(t, "a relay", want[:n], next(t, near, n))
				equal(t, "a relay of a relay", want[:n], next(t, far, n))
				lists(t, o, one, two, q)
			})
		})
	}
}

// lists compares what lists of the three bring.
func lists(t *testing.T, o *origin, one, two *relay.Relay, q listwatch.Query) {
	t.Helper()
	want := list(t, o, q)
	for i, r := range []*relay.Relay{one, two} {
		got := list(t, r, q)
		if got.Version != want.Version || len(got.Items) != len(want.Items) {
			t.Errorf("relay %d: a list of %d objects at %d, want %d at %d", i, len(got.Items), got.Version, len(want.Items), want.Version)
			continue
		}
		for j := range want.Items {
			if string(got.Items[j].Data) != string(want.Items[j].Data) {
				t.Errorf("relay %d: got %s, want %s", i, got.Items[j].Data, want.Items[j].Data)
			}
		}
	}
	if got, want := one.Describe(), o.Describe(); got.Kind != want.Kind || got.Epoch != want.Epoch || len(got.Fields) != len(want.Fields) {
		t.Errorf("described as %+v, want %+v", got, want)
	}
}

func TestBytesOfObjectsAreShared(t *testing.T) {
	o := openOrigin(t)
	first := o.put("a", "red")
	r := ready(t, open(t, o, relay.Options{Fields: []string{"spec.color"}, BackfillVersions: -1}))
	got := list(t, r, listwatch.Query{}).Items[0]
	if &got.Data[0] != &first.Data[0] {
		t.Error("the relay has bytes of its own")
	}
	if got.Fields["spec.color"] != "red" {
		t.Errorf("fields are %v, want spec.color", got.Fields)
	}
}

func TestAReadOfTheNewestStateSeesEveryAcknowledgedWrite(t *testing.T) {
	o := openOrigin(t)
	r := open(t, o, relay.Options{})
	for range 200 {
		written := o.put("a", "red")
		if page := list(t, r, listwatch.Query{}); page.Version < written.Version || page.Items[0].Version < written.Version {
			t.Fatalf("a list is of %d, after a write of %d", page.Version, written.Version)
		}
		written = o.put("a", "blue")
		w := watch(t, r, everything)
		if e := next(t, w, 1)[0]; e.Version < written.Version {
			t.Fatalf("a watch begins with %d, after a write of %d", e.Version, written.Version)
		}
		got, err := r.Get(t.Context(), written.Key)
		if err != nil || got.Version != written.Version {
			t.Fatalf("got %v, %v; want version %d", got, err, written.Version)
		}
		w.Close()
	}
}

func TestWritesToOtherCollectionsMoveARelayOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		other := collection(t, o.db, "Other")
		r := ready(t, open(t, o, relay.Options{}))
		w := watch(t, r, fromNow)
		if _, err := other.Create(t.Context(), []byte(`{"metadata":{"name":"x","namespace":"default"}}`)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if page := list(t, r, listwatch.Query{}); page.Version != o.db.Version() {
			t.Errorf("a list is of %d, want %d", page.Version, o.db.Version())
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		if at := w.(listwatch.Poller).Position(); at != o.db.Version() {
			t.Errorf("a silent watcher is at %d, want %d", at, o.db.Version())
		}
	})
}

func TestAVersionThatDoesNotComeIsWaitedForAndThenNotYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		r := ready(t, open(t, o, relay.Options{}))
		q := listwatch.Query{Start: listwatch.At, Version: o.db.Version() + 1}
		began := time.Now()
		_, err := r.List(t.Context(), q)
		if took := time.Since(began); !errors.Is(err, listwatch.NotYet) || took != 3*time.Second {
			t.Errorf("a list: %v after %v, want NotYet after 3 s", err, took)
		}
		w := watch(t, r, q)
		if _, err := end(t, w); !errors.Is(err, listwatch.NotYet) {
			t.Errorf("a watch: %v, want NotYet", err)
		}
		w = watch(t, r, q)
		o.put("a", "red")
		o.put("b", "red")
		if e := next(t, w, 1)[0]; e.Object.Key.Name != "b" {
			t.Errorf("got %v, want what comes after the version", e.Object.Key)
		}
	})
}

func TestCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		r := ready(t, relay.Open(o, relay.Options{}))
		behind, future := watch(t, r, fromNow), watch(t, r, listwatch.Query{Start: listwatch.At, Version: 1 << 62})
		o.put("a", "red")
		synctest.Wait()
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if n, err := end(t, behind); n != 1 || err != io.EOF {
			t.Errorf("a watcher got %d events and %v, want what was there and io.EOF", n, err)
		}
		if _, err := end(t, future); err != io.EOF {
			t.Errorf("one that waits for the future got %v, want io.EOF", err)
		}
		if _, err := r.Watch(t.Context(), everything); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("a watch of a closed relay: %v, want Unavailable", err)
		}
		if _, err := r.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("a list of a closed relay: %v, want Unavailable", err)
		}
	})
}

func TestARelayHasAPastFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		for i := range 100 {
			o.put("a", fmt.Sprint("red", i))
			o.put("b", fmt.Sprint("blue", i))
		}
		from := list(t, o, listwatch.Query{}).Version
		want := watch(t, o, listwatch.Query{Start: listwatch.At, Version: from})
		o.remove("a")
		o.put("a", "blue")
		late := ready(t, open(t, o, relay.Options{}))
		got := watch(t, late, listwatch.Query{Start: listwatch.At, Version: from})
		o.put("b", "red")
		equal(t, "a watch from before the relay was", next(t, want, 3), next(t, got, 3))
		if page := list(t, late, listwatch.Query{Start: listwatch.At, Version: from, Match: listwatch.Exact}); page.Version != from || len(page.Items) != 2 {
			t.Errorf("a list of the past: %d objects at %d, want 2 at %d", len(page.Items), page.Version, from)
		}

		without := ready(t, open(t, o, relay.Options{BackfillVersions: -1}))
		if _, err := without.Watch(t.Context(), listwatch.Query{Start: listwatch.At, Version: from}); !errors.Is(err, listwatch.Expired) {
			t.Errorf("a relay without a past: %v, want Expired", err)
		}
	})
}

func TestTheFirstStateShownIsNotThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		for i := range 3000 {
			o.put("a", fmt.Sprint("red", i))
		}
		newest := o.put("a", "blue")
		r := open(t, o, relay.Options{})
		if page := list(t, r, listwatch.Query{Start: listwatch.Any}); page.Version < newest.Version {
			t.Errorf("the first list is of %d, and the upstream was at %d", page.Version, newest.Version)
		}
	})
}
