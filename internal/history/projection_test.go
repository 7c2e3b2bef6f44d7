package history

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"unique"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// specObject returns an object with two members that change separately.
func specObject(name string, v listwatch.Version, spec, status string) *listwatch.Object {
	data := fmt.Appendf(nil, `{"metadata":{"name":%q,"resourceVersion":"%d"},"spec":%q,"status":%q}`, name, v,
		spec, status)
	return &listwatch.Object{Key: listwatch.Key{Name: name}, Version: v, Data: data}
}

// checkReductions compares the counted memory of reduced objects with their sum.
func (w *walk) checkReductions() {
	w.Helper()
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	var indexed, matched int64
	for _, f := range l.feeds.bySelection {
		unlock, sum := f.lock(), &indexed
		if f.matched != nil {
			sum = &matched
		}
		for n := f.chain.floor.next.Load(); n != nil; n = n.next.Load() {
			if n.reduction != nil && n.reduction.object != nil {
				*sum += reductionMemory(n.reduction.object)
			}
		}
		unlock()
	}
	if got := l.feeds.size.reduced.Load(); got != indexed {
		w.Errorf("%d bytes of reduced objects of indexed feeds are counted, want %d", got, indexed)
	}
	if got := l.feeds.matcher.reduced.Load(); got != matched {
		w.Errorf("%d bytes of reduced objects of matched feeds are counted, want %d", got, matched)
	}
}

func TestHiddenChangesMoveThePosition(t *testing.T) {
	l := New(Options{})
	q := listwatch.Query{Selection: listwatch.Selection{Projection: testkit.Projection(t, "spec")}}
	c := watch(t, l, q)
	l.Append(Record{Version: 2, New: specObject("a", 2, "x", "1")})
	wantEvent(t, c, "ADDED", 2, `"spec":"x"}`)
	woken := false
	c.Wake(func() { woken = true })
	l.Append(Record{Version: 3, Old: l.Get(listwatch.Key{Name: "a"}), New: specObject("a", 3, "x", "2")})
	if n, err := c.Poll(make([]listwatch.Event, 1)); n != 0 || err != nil || woken || c.Progress().Version != 3 {
		t.Fatalf("a hidden change: got %d events, %v, woken %t, position %d; want none at position 3", n, err, woken,
			c.Progress().Version)
	}
	l.Append(Record{Version: 4, Old: l.Get(listwatch.Key{Name: "a"}), New: specObject("a", 4, "y", "2")})
	wantEvent(t, c, "MODIFIED", 4, `"spec":"y"}`)
	l.Append(Record{Version: 5, Old: l.Get(listwatch.Key{Name: "a"})})
	wantEvent(t, c, "DELETED", 5, `"spec":"y"}`)

	// A watch that starts before the feed of its projection compares the records.
	q.Start, q.Version, q.Projection = listwatch.StartAt, 1, testkit.Projection(t, "status")
	late := watch(t, l, q)
	wantEvent(t, late, "ADDED", 2, `"status":"1"}`)
	wantEvent(t, late, "MODIFIED", 3, `"status":"2"}`)
	wantEvent(t, late, "DELETED", 5, `"status":"2"}`)
}

func wantEvent(t *testing.T, c *Cursor, eventType string, v listwatch.Version, end string) {
	t.Helper()
	var batch [1]listwatch.Event
	if n, err := c.Poll(batch[:]); n != 1 || err != nil {
		t.Fatalf("got %d events, %v, want %s at %d", n, err, eventType, v)
	}
	e := batch[0]
	want := fmt.Sprintf(`{"metadata":{"name":"a","resourceVersion":"%d"},%s`, v, end)
	if e.Type.String() != eventType || e.Version != v || e.Object.Version != v || string(e.Object.Data) != want {
		t.Fatalf("got %v at %d: %s, want %s at %d: %s", e.Type, e.Version, e.Object.Data, eventType, v, want)
	}
}

func TestReadersShareTheReducedObject(t *testing.T) {
	l := New(Options{})
	q := listwatch.Query{Selection: listwatch.Selection{Projection: testkit.Projection(t, "spec")}}
	a, b, whole := watch(t, l, q), watch(t, l, q), watch(t, l, listwatch.Query{})
	l.Append(Record{Version: 2, New: specObject("a", 2, "x", strings.Repeat("s", 1000))})
	var events [3][1]listwatch.Event
	var refs [3][1]frames.Ref
	for i, c := range []*Cursor{a, b, whole} {
		if n, err := c.PollFrames(events[i][:], refs[i][:]); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if events[0][0].Object != events[1][0].Object {
		t.Error("two readers of a projection have different objects")
	}
	if refs[0] != refs[1] || refs[0][0].Frames == nil {
		t.Errorf("two readers of a projection have the frames %v and %v, want the same", refs[0], refs[1])
	}
	if events[2][0].Object != l.Get(listwatch.Key{Name: "a"}) {
		t.Error("a reader of whole objects does not have the stored object")
	}
	if refs[0][0].Frames == refs[2][0].Frames {
		t.Error("a reader of whole objects has the frames of a projection")
	}
	if used := l.feeds.size.reduced.Load(); used != reductionMemory(events[0][0].Object) {
		t.Errorf("the reduced object counts as %d bytes, want %d", used, reductionMemory(events[0][0].Object))
	}
	build := func() ([]byte, error) { return []byte("frame"), nil }
	if _, err := refs[0][0].Frames.GetOrBuild(unique.Make[any]("form"), build); err != nil ||
		l.Stats().Frames.Bytes != 5 {
		t.Errorf("got %d bytes of frames, %v, want those of the reduced object", l.Stats().Frames.Bytes, err)
	}
	l.Compact()
	if used := l.feeds.size.reduced.Load(); used != 0 || l.Stats().Frames.Bytes != 0 {
		t.Errorf("%d bytes of reduced objects and %d of frames remain after their records, want none", used,
			l.Stats().Frames.Bytes)
	}
}

func TestReducedObjectsCountAgainstRetention(t *testing.T) {
	const limit = 256 << 10
	records := func(q listwatch.Query) int {
		l := New(Options{Retention: listwatch.Retention{Bytes: limit}})
		c := watch(t, l, q)
		text := strings.Repeat("s", 4000)
		for v := listwatch.Version(2); v < 300; v++ {
			l.Append(Record{
				Version: v, Old: l.Get(listwatch.Key{Name: "a"}),
				New: specObject("a", v, fmt.Sprint(v), text),
			})
			if _, err := c.Poll(make([]listwatch.Event, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if s := l.Stats(); s.HistoryBytes > limit+limit/4 {
			t.Errorf("HistoryBytes is %d, want about %d", s.HistoryBytes, limit)
		}
		return l.Stats().Records
	}
	whole, reduced := records(listwatch.Query{}), records(listwatch.Query{
		Selection: listwatch.Selection{Projection: testkit.Projection(t, "-absent")},
	})
	if reduced > whole*6/10 || reduced < whole*3/10 {
		t.Errorf("%d records are kept with reduced copies, and %d without, want about half", reduced, whole)
	}
}

// TestReplayWithProjectionTakesSteps checks that each comparison of two objects counts as many
// steps, because it takes as long as visiting many records.
func TestReplayWithProjectionTakesSteps(t *testing.T) {
	l := New(Options{})
	key := listwatch.Key{Name: "a"}
	const writes = 1000
	for v := listwatch.Version(2); v < 2+writes; v++ {
		l.Append(Record{Version: v, Old: l.Get(key), New: specObject("a", v, "x", fmt.Sprint(v))})
	}
	c := watch(t, l, listwatch.Query{
		Start: listwatch.StartAt, Version: 2, Selection: listwatch.Selection{Projection: testkit.Projection(t, "spec")},
	})
	polls := 0
	for ; c.Progress().More; polls++ {
		if n, err := c.Poll(make([]listwatch.Event, 1)); n != 0 || err != nil {
			t.Fatalf("got %d events, %v, want none", n, err)
		}
		woken := false
		if c.Wake(func() { woken = true }); c.Progress().More && !woken {
			t.Fatal("Wake does not call its function while records remain")
		}
	}
	if want := writes * comparisonVisits / maxVisits; polls < want || polls > want+2 ||
		c.Progress().Version != 1+writes {
		t.Errorf("reached position %d after %d polls, want %d after about %d", c.Progress().Version, polls,
			1+writes, want)
	}
}

func TestDifferenceHasTheReducedObjects(t *testing.T) {
	l := New(Options{})
	key := listwatch.Key{Name: "a"}
	l.Append(Record{Version: 2, New: specObject("a", 2, "x", "1")},
		Record{Version: 2, New: specObject("b", 2, "x", "1")})
	q := listwatch.Query{Selection: listwatch.Selection{Projection: testkit.Projection(t, "spec")}, Bookmarks: true}
	c := watch(t, l, q)
	l.Append(Record{Version: 3, Old: l.Get(key), New: specObject("a", 3, "x", "2")})
	l.Append(Record{Version: 4, Old: l.Get(listwatch.Key{Name: "b"})})
	q.Since = listwatch.State{Version: 2, ID: feedOf(c).stateID}
	d := watch(t, l, q)
	wantEvent(t, d, "ADDED", 3, `"spec":"x"}`)
	var batch [4]listwatch.Event
	if n, err := d.Poll(batch[:]); n != 2 || err != nil || batch[0].Object.Key.Name != "b" ||
		batch[0].Type != listwatch.Deleted {
		t.Fatalf("got %d events, %v: %+v, want the key of b and the bookmark", n, err, batch[:n])
	}
	if _, ok := batch[1].Since(); !ok {
		t.Error("got the whole state, want a difference")
	}
	q.Projection = testkit.Projection(t, "status")
	if n, err := watch(t, l, q).Poll(batch[:]); n != 2 || err != nil ||
		string(batch[0].Object.Data) != `{"metadata":{"name":"a","resourceVersion":"3"},"status":"2"}` {
		t.Errorf("got %d events, %v: %s, want the whole state with another projection", n, err, batch[0].Object.Data)
	} else if _, ok := batch[1].Since(); ok {
		t.Error("got a difference to the state of another projection")
	}
}

func TestReducedObjectsAreDroppedOnce(t *testing.T) {
	l := New(Options{})
	d := (&reductions{budget: frames.NewBudget(-1), memory: &l.feeds.size.reduced}).add()
	f := newFeed(l, newSelection(listwatch.Selection{Projection: testkit.Projection(t, "spec")}), "", 1)
	r := newRecord(Record{Version: 2, New: specObject("a", 2, "x", "1")}, 0, nil)
	d.drop()
	if d.get(f, r, listwatch.Added) == nil {
		t.Error("a reader of a dropped node has no object")
	}
	if kept := l.feeds.size.reduced.Load(); d.object != nil || kept != 0 {
		t.Errorf("a dropped node keeps %v, and %d bytes, want nothing", d.object, kept)
	}
	d.drop()
	if l.feeds.size.reduced.Load() != 0 {
		t.Error("memory is counted after the second drop")
	}
}

// A part that compares many records before its first event must not be overtaken by the others.
func TestUnionWaitsForReplayWithProjection(t *testing.T) {
	revision := new(revision.Revision)
	newLog := func(kind string) *Log {
		return New(Options{Revision: revision, Description: listwatch.Description{APIVersion: "v1", Kind: kind}})
	}
	slow, fast := newLog("Slow"), newLog("Fast")
	key := listwatch.Key{Name: "a"}
	write := func(l *Log, v listwatch.Version, spec string) {
		l.Append(Record{Version: v, Old: l.Get(key), New: specObject("a", v, spec, fmt.Sprint(v))})
		revision.Advance(v)
	}
	const writes = 1000
	write(fast, 1, "x")
	for v := listwatch.Version(2); v < writes; v++ {
		write(slow, v, "x")
	}
	write(slow, writes, "y")
	write(fast, writes+1, "y")
	spec := listwatch.Selection{Projection: testkit.Projection(t, "spec")}
	u, err := NewUnion("", []Part{{slow, spec}, {fast, spec}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := u.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c := w.(*Cursor)
	for v := listwatch.Version(writes); v <= writes+1; {
		var batch [1]listwatch.Event
		n, err := c.Poll(batch[:])
		catchingUp := c.Progress().More
		switch p := c.Progress().Version; {
		case err != nil:
			t.Fatal(err)
		case n == 0 && !catchingUp:
			t.Fatalf("at position %d: got no event, want %d", p, v)
		case n == 0 && p >= v:
			t.Fatalf("position %d before the event %d", p, v)
		case n == 0:
			woken := false
			if c.Wake(func() { woken = true }); !woken {
				t.Fatal("Wake does not call its function while a part has records to compare")
			}
		case batch[0].Version != v:
			t.Fatalf("got the event %d, want %d", batch[0].Version, v)
		default:
			v++
		}
	}
	if p := c.Progress().Version; p != writes+1 || c.Progress().More {
		t.Errorf("got position %d, catching up %t; want %d and false", p, c.Progress().More, writes+1)
	}
}

// Readers build the reduced objects while retention drops their nodes.
func TestConcurrentReadersGetReducedObjects(t *testing.T) {
	const writes, readers = 2000, 8
	l := New(Options{Retention: listwatch.Retention{Bytes: 20 << 10}})
	l.feeds.limits.nodesPerFeed = 4
	key := listwatch.Key{Name: "a"}
	q := listwatch.Query{
		Selection:     listwatch.Selection{Projection: testkit.Projection(t, "spec")},
		InitialEvents: listwatch.InitialEventsNo,
	}
	var group sync.WaitGroup
	for i := range readers {
		c := watch(t, l, q)
		group.Go(func() {
			batch := make([]listwatch.Event, 1+i)
			for {
				n, err := c.Next(t.Context(), batch)
				if errors.Is(err, listwatch.Expired) { // retention was faster
					c = watch(t, l, q)
					continue
				}
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					return
				}
				for _, e := range batch[:n] {
					want := fmt.Sprintf(`{"metadata":{"name":"a","resourceVersion":"%d"},"spec":"%[1]d"}`, e.Version)
					if string(e.Object.Data) != want {
						t.Errorf("got %s, want %s", e.Object.Data, want)
						return
					}
				}
			}
		})
	}
	for v := listwatch.Version(2); v < 2+writes; v++ {
		l.Append(Record{
			Version: v, Old: l.Get(key),
			New: specObject("a", v, v.String(), strings.Repeat("s", int(v%100))),
		})
	}
	l.CloseWithError(io.EOF)
	group.Wait()
	l.Compact()
	if got := l.feeds.size.reduced.Load(); got != 0 {
		t.Errorf("%d bytes of reduced objects are counted without records", got)
	}
}

// A record has the frames of whole objects, and so has an object of the state.
func TestReplayHasNoFramesOfWholeObjects(t *testing.T) {
	l := New(Options{})
	l.Append(Record{Version: 2, New: specObject("a", 2, "x", "1")})
	for _, q := range []listwatch.Query{{Start: listwatch.StartAt, Version: 1}, {}} {
		q.Projection = testkit.Projection(t, "spec")
		var events [1]listwatch.Event
		refs := [1]frames.Ref{{Frames: frames.New(nil)}}
		if n, err := watch(t, l, q).PollFrames(events[:], refs[:]); n != 1 || err != nil || refs[0] != (frames.Ref{}) {
			t.Errorf("got %d events, %v, with the frames %v, want one without frames", n, err, refs[0])
		}
	}
}

func TestReducedFeedStaysReducedAfterReset(t *testing.T) {
	l := New(Options{})
	q := listwatch.Query{Selection: listwatch.Selection{Projection: testkit.Projection(t, "spec")}}
	watch(t, l, q) // keeps the feed
	l.Reset([]*listwatch.Object{specObject("a", 5, "x", "1")}, 5)
	q.InitialEvents = listwatch.InitialEventsNo
	c := watch(t, l, q)
	l.Append(Record{Version: 6, Old: l.Get(listwatch.Key{Name: "a"}), New: specObject("a", 6, "y", "1")})
	wantEvent(t, c, "MODIFIED", 6, `"spec":"y"}`)
}
