package controller_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// An expiry is a delete like any other, so nothing between a store and a reader has code for it.
// These tests show that each of them passes it on, and that no renewal causes an event.

// An expiryTest has a collection with the objects "a", which expires, and "b", which is renewed.
type expiryTest struct {
	*testing.T
	db     *memory.DB
	agents *store.Collection
}

func newExpiryTest(t *testing.T) expiryTest {
	t.Helper()
	db := memory.Open(memory.Options{})
	e := expiryTest{t, db, testkit.Must(db.Collection(agentSpec))(t)}
	for _, name := range []string{"a", "b"} {
		testkit.Must(e.agents.Create(t.Context(), []byte(`{"metadata":{"name":"`+name+`"},"state":"x"}`)))(t)
	}
	return e
}

// expire lets "a" expire and renews "b".
func (e expiryTest) expire() {
	e.Helper()
	for range 4 {
		<-time.After(agentTTL / 3)
		testkit.Must(e.agents.Renew(e.Context(), keyOf("b"), listwatch.Preconditions{}))(e.T)
	}
}

func (e expiryTest) want(events *eventLog) {
	e.Helper()
	events.want(e.T, "ADDED a", "ADDED b", "DELETED a")
}

func TestExpiryPassesARelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExpiryTest(t)
		r := relay.Open(e.agents, relay.Options{})
		defer r.Close()
		events := record(t, r, listwatch.Query{})
		e.expire()
		e.want(events)
		if page := testkit.Must(r.List(t.Context(), listwatch.Query{}))(t); len(page.Items) != 1 {
			t.Errorf("the relay lists %d objects, want one", len(page.Items))
		}
	})
}

func TestExpiryPassesAUnion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExpiryTest(t)
		flags := testkit.Must(e.db.Collection(store.CollectionSpec{Kind: "Flag"}))(t)
		union := testkit.Must(e.agents.Union(listwatch.Part{Source: e.agents}, listwatch.Part{Source: flags}))(t)
		events := record(t, union, listwatch.Query{})
		e.expire()
		e.want(events)
	})
}

func TestExpiryPassesAProjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExpiryTest(t)
		fields := testkit.Must(listwatch.ParseProjection("spec"))(t)
		events := record(t, e.agents, listwatch.Query{Selection: listwatch.Selection{Projection: fields}})
		e.expire()
		e.want(events)
	})
}

func TestExpiryIsPartOfADifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExpiryTest(t)
		q := listwatch.Query{InitialEvents: listwatch.InitialEventsYes, Bookmarks: true}
		w := testkit.Must(e.agents.Watch(t.Context(), q))(t)
		for events := make([]listwatch.Event, 1); q.Since.ID == ""; {
			testkit.Must(w.Next(t.Context(), events))(t)
			q.Since = events[0].State()
		}
		_ = w.Close()
		e.expire()
		events := record(t, e.agents, q)
		events.want(t, "DELETED a")
	})
}

func TestExpiryReachesASavedCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExpiryTest(t)
		file := filepath.Join(t.TempDir(), "copy")
		for _, want := range []int{2, 1} {
			ctx, stop := context.WithCancel(t.Context())
			i := &informer.Informer[App]{Source: e.agents, Persist: persist.File{Path: file}}
			go i.Run(ctx)
			if err := i.WaitForSync(ctx); err != nil {
				t.Fatal(err)
			}
			if got := testkit.Must(i.List(listwatch.Query{}))(t); len(got) != want {
				t.Errorf("the informer has %d objects, want %d", len(got), want)
			}
			stop()
			synctest.Wait() // the informer saves its copy at its end
			e.expire()
		}
	})
}
