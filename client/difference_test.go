package client

import (
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func TestReaderRequestsTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		things, err := memory.Open(memory.Options{StartVersion: 10}).Collection(store.CollectionSpec{Kind: "Thing"})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if _, err := things.Create(t.Context(), []byte(`{"metadata":{"name":"`+name+`"}}`)); err != nil {
				t.Fatal(err)
			}
		}
		s := servertest.Start(t, things, servertest.Options{})
		remote := &Remote{URL: s.URL("/things"), Network: s.Network}
		defer remote.Close()
		w := testkit.Watch(t, remote, listwatch.Query{Bookmarks: true})
		events := testkit.Read(t, w, 3)
		has := events[2].State()
		if has.Version != 12 || has.ID == "" {
			t.Fatalf("got the state %+v, want version 12 with an ID", has)
		}
		if _, err := things.Delete(t.Context(), listwatch.Key{Name: "a"}, listwatch.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		q := listwatch.Query{
			Bookmarks: true, Start: listwatch.StartAt, Version: 12,
			InitialEvents: listwatch.InitialEventsYes, Since: has,
		}
		events = testkit.Read(t, testkit.Watch(t, remote, q), 2)
		gone, synced := events[0], events[1]
		if gone.Type != listwatch.Deleted || !gone.Initial || gone.Object.Key.Name != "a" || gone.Version != 13 {
			t.Errorf("got %+v, want the initial event DELETED a at version 13", gone)
		}
		if since, ok := synced.Since(); !ok || since != 12 || synced.Version != 13 {
			t.Errorf("got %s at version %d, want the end of a difference since 12 at 13",
				synced.Object.Data, synced.Version)
		}
		// A reader without bookmarks could not tell a difference from a state.
		q.Bookmarks = false
		if events = testkit.Read(t, testkit.Watch(t, remote, q), 1); events[0].Type != listwatch.Added {
			t.Errorf("got %+v, want the whole state", events[0])
		}
	})
}
