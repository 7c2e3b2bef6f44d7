package history

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
)

func TestResetExpiresOpenWatches(t *testing.T) {
	l := New(Options{})
	a, b := listwatch.Key{Namespace: "n", Name: "a"}, listwatch.Key{Namespace: "n", Name: "b"}
	put(l, a, nil)
	idle := watch(t, l, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
	slow := watch(t, l, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
	woken := make(chan struct{}, 1)
	idle.Wake(func() { woken <- struct{}{} })
	put(l, a, nil)
	<-woken
	if n, err := idle.Poll(make([]listwatch.Event, 4)); n != 1 || err != nil {
		t.Fatalf("got %d events, %v", n, err)
	}
	idle.Wake(func() { woken <- struct{}{} })

	kept := l.Get(a)
	l.Reset([]*listwatch.Object{kept, thing(b, 90, nil, "n1")}, 100)
	select {
	case <-woken:
	case <-time.After(5 * time.Minute):
		t.Fatal("a waiting watcher was not woken")
	}
	for name, c := range map[string]*Cursor{"a watcher that has read every event": idle, "a lagging watcher": slow} {
		events, err := drainCursor(c)
		if !errors.Is(err, listwatch.Expired) {
			t.Errorf("%s: got %v after %d events, want Expired", name, err, len(events))
		}
	}
	if s := l.Stats(); s.Oldest != 100 || s.Newest != 100 || s.Objects != 2 || s.Records != 0 {
		t.Errorf("%+v, want 2 objects at 100 and no history", s)
	}
	if _, err := l.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 99}); !errors.Is(err,
		listwatch.Expired) {
		t.Errorf("a watch from 99: %v, want Expired", err)
	}
	next := watch(t, l, listwatch.Query{Start: listwatch.StartAt, Version: 100})
	put(l, b, nil)
	if events, err := drainCursor(next); err != nil || len(events) != 1 || events[0].Version != 101 {
		t.Errorf("a watch from 100: %v, %v; want the write at 101", events, err)
	}
	page, err := l.List(t.Context(),
		listwatch.Query{Start: listwatch.StartAt, Version: 100, Match: listwatch.MatchExact})
	if err != nil || len(page.Items) != 2 || page.Items[0] != kept || page.Items[1].Version != 90 {
		t.Errorf("a list at 100: %+v, %v; want a and b as they were", page, err)
	}
}

// drainCursor polls until Poll returns no events.
func drainCursor(c *Cursor) (all []listwatch.Event, err error) {
	var batch [4]listwatch.Event
	for {
		n, err := c.Poll(batch[:])
		if n == 0 {
			return all, err
		}
		all = append(all, batch[:n]...)
	}
}

// createsAt returns records that create objects with the given names at v.
func createsAt(v listwatch.Version, names ...string) []Record {
	var records []Record
	for _, name := range names {
		records = append(records,
			Record{Version: v, New: thing(listwatch.Key{Namespace: "n", Name: name}, v, nil, "n1")})
	}
	return records
}

func TestBatchesDoNotSplitAVersion(t *testing.T) {
	l := New(Options{})
	live := watch(t, l, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
	l.Append(createsAt(1, "a", "b")...)
	l.Append(createsAt(2, "c")...)
	l.Append(createsAt(3, "d", "e", "f")...)
	l.Append(createsAt(4, "g", "h", "i", "j", "k")...)
	replaying := watch(t, l, listwatch.Query{Start: listwatch.StartAt, Selection: listwatch.Selection{Namespace: "n"}})
	want := []listwatch.Version{1, 1, 2, 0, 3, 3, 3, 0, 4, 4, 4, 4, 0, 4}
	for name, c := range map[string]*Cursor{"reading the feed": live, "reading the log": replaying} {
		var got []listwatch.Version
		for {
			batch := make([]listwatch.Event, 4)
			n, err := c.Poll(batch)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			if got != nil {
				got = append(got, 0)
			}
			for _, e := range batch[:n] {
				got = append(got, e.Version)
			}
			if at := c.Progress().Version; at >= 4 && len(got) < len(want) {
				t.Errorf("%s: the position is %d inside the group of 4", name, at)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got the batches %v, want %v", name, got, want)
		}
	}
}

func TestContainsWriteFindsRetainedRecords(t *testing.T) {
	l := New(Options{})
	l.Append(createsAt(3, "a", "b")...)
	a := listwatch.Key{Namespace: "n", Name: "a"}
	l.Append(Record{Version: 5, Old: l.Get(a)})
	for _, c := range []struct {
		v    listwatch.Version
		name string
		want bool
	}{
		{3, "a", true},
		{3, "b", true},
		{3, "c", false},
		{4, "a", false},
		{5, "a", true},
		{5, "b", false},
		{6, "a", false},
		{2, "a", false},
	} {
		if got := l.ContainsWrite(c.v, listwatch.Key{Namespace: "n", Name: c.name}); got != c.want {
			t.Errorf("a write of %s at %d: got %v, want %v", c.name, c.v, got, c.want)
		}
	}
}
