package history

import (
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/departures"
	"github.com/listwatch/listwatch/internal/testkit"
)

func remove(l *Log, key listwatch.Key) listwatch.Version {
	v := l.Stats().Newest + 1
	l.Append(Record{Version: v, Old: l.Get(key)})
	return v
}

// stateOf returns the current state of the selection of q.
func stateOf(t *testing.T, l *Log, q listwatch.Query) listwatch.State {
	t.Helper()
	q.Bookmarks = true
	_, synced, err := readInitial(watch(t, l, q))
	if err != nil {
		t.Fatal(err)
	}
	return synced.State()
}

// difference returns the difference to the state of q since v, as text.
func difference(t *testing.T, l *Log, q listwatch.Query, v listwatch.Version) (lines []string) {
	t.Helper()
	q.Since, q.Bookmarks = stateOf(t, l, q), true
	q.Since.Version = v
	initial, synced, err := readInitial(watch(t, l, q))
	if err != nil {
		t.Fatal(err)
	}
	if since, ok := synced.Since(); !ok || since != v {
		t.Fatalf("got %s, want the difference since %d", synced.Object.Data, v)
	}
	for _, e := range initial {
		lines = append(lines, fmt.Sprint(e.Type, " ", e.Object.Key, " ", e.Version))
	}
	return lines
}

func TestDifferenceHasOnlyKeysOfTheSelection(t *testing.T) {
	l := New(Options{})
	red, blue := map[string]string{"color": "red"}, map[string]string{"color": "blue"}
	key := func(name string) listwatch.Key { return listwatch.Key{Namespace: "n", Name: name} }
	for _, name := range []string{"changed", "recreated", "gone"} {
		put(l, key(name), red)
	}
	for _, name := range []string{"foreign", "foreigner"} {
		put(l, key(name), blue)
	}
	at := l.Stats().Newest
	put(l, key("changed"), blue)
	put(l, key("changed"), red)
	put(l, key("foreign"), blue)
	remove(l, key("foreigner"))
	remove(l, key("recreated"))
	put(l, key("recreated"), red)
	gone := put(l, key("gone"), blue)
	put(l, key("gone"), red)
	put(l, key("gone"), blue)
	put(l, key("brief"), red)
	brief := remove(l, key("brief"))
	want := []string{
		"ADDED n/changed 7", "ADDED n/recreated 11", fmt.Sprint("DELETED n/gone ", gone),
		fmt.Sprint("DELETED n/brief ", brief),
	}
	got := difference(t, l, listwatch.Query{Selection: listwatch.Selection{Labels: testkit.Labels(t, "color=red")}}, at)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := difference(t, l, listwatch.Query{Selection: listwatch.Selection{Name: "nobody"}}, at); len(got) > 0 {
		t.Errorf("got %v for a name that no object has, want no events", got)
	}
}

func TestDeletedInADifferenceHasOnlyItsKey(t *testing.T) {
	l := New(Options{Description: listwatch.Description{Kind: "Thing", APIVersion: "v1"}})
	key := listwatch.Key{Namespace: "n", Name: `a"b`}
	put(l, key, nil)
	q := listwatch.Query{Bookmarks: true, Since: stateOf(t, l, listwatch.Query{})}
	remove(l, key)
	initial, _, err := readInitial(watch(t, l, q))
	const want = `{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a\"b","namespace":"n","resourceVersion":"2"}}`
	if err != nil || len(initial) != 1 || string(initial[0].Object.Data) != want || !initial[0].Initial {
		t.Errorf("got %v, %v, want an initial DELETED event with %s", initial, err, want)
	}
}

// TestDeparturesAreBounded fills the limit twice. Each name is different, and four objects share
// their labels.
func TestDeparturesAreBounded(t *testing.T) {
	const limit = 1 << 20
	l := New(Options{Retention: listwatch.Retention{SinceBytes: limit, Bytes: 1}})
	key := func(i int) listwatch.Key {
		return listwatch.Key{Namespace: "default", Name: fmt.Sprintf("pod-%08d", i)}
	}
	n := 0
	for ; l.Stats().Horizon == 0; n++ {
		put(l, key(n), map[string]string{"app": fmt.Sprint("app", n/4)})
		remove(l, key(n))
	}
	if perDeparture := float64(l.state.departures.Bytes) / float64(n-departures.ChunkSize); perDeparture > 120 {
		t.Errorf("a departure takes %.0f bytes, want at most 120", perDeparture)
	}
	at := l.Stats().Newest
	for i := range n {
		put(l, key(i), map[string]string{"app": fmt.Sprint("other", i)})
		remove(l, key(i))
	}
	stats := l.Stats()
	if l.state.departures.Bytes > limit || stats.HistoryBytes < l.state.departures.Bytes || stats.Horizon == 0 ||
		stats.Horizon > at+listwatch.Version(2*n) {
		t.Errorf("got %d bytes of departures, %+v, want at most %d bytes, which count as history",
			l.state.departures.Bytes, stats, limit)
	}
	q := listwatch.Query{Bookmarks: true, Since: stateOf(t, l, listwatch.Query{})}
	for since, want := range map[listwatch.Version]bool{
		stats.Horizon - 1: false, stats.Horizon: true,
		stats.Newest + 1: false,
	} {
		q.Since.Version = since
		_, synced, err := readInitial(watch(t, l, q))
		if _, ok := synced.Since(); err != nil || ok != want {
			t.Errorf("since %d with horizon %d: got a difference: %v, %v, want %v", since, stats.Horizon, ok, err, want)
		}
	}
}

func TestPollVisitsABoundedNumberOfObjects(t *testing.T) {
	l := New(Options{})
	const n = 3 * maxVisits
	objects := make([]*listwatch.Object, n)
	for i := range objects {
		objects[i] = thing(listwatch.Key{Name: fmt.Sprintf("o%06d", i)}, 1, map[string]string{"app": "blue"}, "n1")
	}
	objects[n-1] = thing(objects[n-1].Key, 1, map[string]string{"app": "red"}, "n1")
	l.Reset(objects, 1)
	c := watch(t, l, listwatch.Query{
		Selection: listwatch.Selection{Labels: testkit.Labels(t, "app=red")},
		Bookmarks: true,
	})
	var batch [4]listwatch.Event
	for polls := 1; ; polls++ {
		woken := false
		count, err := c.Poll(batch[:])
		if err != nil {
			t.Fatal(err)
		}
		if count == 0 {
			c.Wake(func() { woken = true })
			if more := c.Progress().More; !woken || !more {
				t.Fatalf("a Poll stopped within the state: woken %t, more %t; want both", woken, more)
			}
			continue
		}
		if polls != 3 || count != 2 {
			t.Fatalf("Poll %d returned %d events, want two at the third", polls, count)
		}
		if batch[0].Object.Key != objects[n-1].Key || batch[1].Type != listwatch.Synced {
			t.Errorf("got %v and %v, want the last object and Synced", batch[0].Object.Key, batch[1].Type)
		}
		return
	}
}

func TestFirstResetSetsTheHorizon(t *testing.T) {
	l := New(Options{})
	l.Reset([]*listwatch.Object{thing(listwatch.Key{Name: "a"}, 7, nil, "n1")}, 9)
	if got := l.Stats().Horizon; got != 9 {
		t.Errorf("the horizon is %d, want 9: the log does not know what happened before", got)
	}
}

// A reader of the log has missed the same write. Its version does not show that.
func TestResetWithAMissedWriteForgetsDepartures(t *testing.T) {
	l := New(Options{})
	key := func(name string) listwatch.Key { return listwatch.Key{Name: name} }
	put(l, key("a"), nil)
	at := put(l, key("b"), nil)
	q := listwatch.Query{Bookmarks: true, Since: stateOf(t, l, listwatch.Query{})}
	missed := thing(key("a"), at, nil, "n2")
	l.Reset([]*listwatch.Object{missed, l.Get(key("b"))}, at+10)
	initial, synced, err := readInitial(watch(t, l, q))
	if _, ok := synced.Since(); err != nil || ok || len(initial) != 2 {
		t.Errorf("got %d initial events, a difference: %v, %v, want the whole state", len(initial), ok, err)
	}
	if got := l.Stats().Horizon; got != at+10 {
		t.Errorf("the horizon is %d, want %d", got, at+10)
	}
}

// A reader may have an object that another log has sent, and that this log has never seen. Unless
// it says that it has nothing newer than its state, it gets no difference over a gap.
func TestDifferenceOverAGapNeedsTheNewestVersion(t *testing.T) {
	l := New(Options{})
	since := stateOf(t, l, listwatch.Query{})
	since.Version = put(l, listwatch.Key{Name: "a"}, nil)
	put(l, listwatch.Key{Name: "b"}, nil)
	before := l.Stats().Newest
	l.Reset([]*listwatch.Object{l.Get(listwatch.Key{Name: "a"})}, before+10)
	for _, c := range []struct {
		start   listwatch.Start
		newest  listwatch.Version
		permits bool
	}{
		{listwatch.StartNewest, 0, false},
		{listwatch.StartAt, since.Version, true},
		{listwatch.StartAt, before + 1, false},
	} {
		q := listwatch.Query{
			Start: c.start, Version: c.newest, InitialEvents: listwatch.InitialEventsYes, Bookmarks: true, Since: since,
		}
		_, synced, err := readInitial(watch(t, l, q))
		if _, ok := synced.Since(); err != nil || ok != c.permits {
			t.Errorf("newest %d: got a difference: %t, %v, want %t", c.newest, ok, err, c.permits)
		}
	}
}
