package history

import (
	"testing"
	"unique"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

// initialRefs returns the caches of the first n initial events of a new cursor, and the cursor.
func initialRefs(t *testing.T, l *Log, n int) ([]frames.Ref, *Cursor) {
	t.Helper()
	c := watch(t, l, listwatch.Query{InitialEvents: listwatch.InitialEventsYes})
	refs := make([]frames.Ref, n)
	if got, err := c.PollFrames(make([]listwatch.Event, n), refs); got != n || err != nil {
		t.Fatalf("got %d events, %v, want %d", got, err, n)
	}
	return refs, c
}

func TestCursorsShareFramesOfInitialEvents(t *testing.T) {
	l := New(Options{})
	a, b := listwatch.Key{Name: "a"}, listwatch.Key{Name: "b"}
	put(l, a, nil)
	put(l, b, nil)
	first, slow := initialRefs(t, l, 1)
	put(l, a, nil)
	put(l, b, nil)
	second, _ := initialRefs(t, l, 2)
	third, _ := initialRefs(t, l, 2)
	if second[0] != third[0] || second[1] != third[1] || second[0].Frames == nil || second[0].Node != nil {
		t.Errorf("got caches %v and %v, want the same", second, third)
	}
	if first[0] == second[0] {
		t.Error("two versions of an object have one cache")
	}
	// The old version of b must not get a cache, because nothing would drop it.
	late := make([]frames.Ref, 1)
	if n, err := slow.PollFrames(make([]listwatch.Event, 1), late); n != 1 || err != nil || late[0].Frames != nil {
		t.Errorf("got %d events, %v, and the cache %v for a replaced object, want none", n, err, late[0].Frames)
	}
	l.Compact()
	if got := len(l.caches.initial.byObject); got != 2 {
		t.Errorf("%d objects have a cache after their records were dropped, want 2", got)
	}
	l.Reset(nil, l.version()+1)
	if got := len(l.caches.initial.byObject); got != 0 {
		t.Errorf("%d objects have a cache after a reset, want none", got)
	}
}

func TestCursorsShareFramesOfWrites(t *testing.T) {
	l := New(Options{})
	form := unique.Make[any]("form")
	all, some := watch(t, l, listwatch.Query{}), watch(t, l, listwatch.Query{
		Selection: listwatch.Selection{Namespace: "x"},
	})
	behind := watch(t, l, listwatch.Query{})
	var events [3]listwatch.Event
	for _, c := range []*Cursor{all, some, behind} {
		if n, err := c.Poll(events[:]); n != 0 || err != nil {
			t.Fatalf("got %d events, %v, want none", n, err)
		}
	}
	put(l, listwatch.Key{Namespace: "x", Name: "a"}, nil)
	built := 0
	nodes := make(map[*frames.Node]int)
	for _, c := range []*Cursor{all, some, behind} {
		var refs [3]frames.Ref
		if n, err := c.PollFrames(events[:], refs[:]); n != 1 || err != nil {
			t.Fatalf("got %d events, %v, want one", n, err)
		}
		nodes[refs[0].Node]++
		if _, err := refs[0].Frames.GetOrBuild(form, func() ([]byte, error) { built++; return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if built != 1 {
		t.Errorf("three cursors encoded the event %d times, want once", built)
	}
	if len(nodes) != 2 {
		t.Errorf("the events have %d places in feeds, want one for each of the two selections", len(nodes))
	}
}
