package history

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/internal/wire/frames"
)

func TestRecordsAreDroppedByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Retention: listwatch.Retention{Age: time.Minute}})
		for range 10 {
			put(l, listwatch.Key{Name: "a"}, nil)
			time.Sleep(10 * time.Second)
		}
		// A record whose age is exactly Retention.Age is retained.
		if s := l.Stats(); l.records.len != 7 || s.Oldest != 3 {
			t.Errorf("%d records, floor %d; want 7 and 3", l.records.len, s.Oldest)
		}
	})
}

func TestEarlyDropsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Retention: listwatch.Retention{Age: time.Minute, Bytes: 4000}})
		for range 20 {
			put(l, listwatch.Key{Name: "a"}, nil)
		}
		s := l.Stats()
		if dropped := s.Window.DroppedEarly; dropped == 0 || dropped != uint64(20-s.Records) {
			t.Errorf("got %+v, want every dropped write of 20 counted", s)
		}
		if s.Window.Age != time.Minute || s.Window.Bytes != 4000 {
			t.Errorf("got %+v, want the limits", s.Window)
		}
		time.Sleep(time.Hour)
		for range 2 {
			put(l, listwatch.Key{Name: "a"}, nil)
		}
		if after := l.Stats().Window; after.DroppedEarly != s.Window.DroppedEarly {
			t.Errorf("%d early drops, want %d: the others were old", after.DroppedEarly, s.Window.DroppedEarly)
		}
	})
}

func TestNewestRecordIsAlwaysRetained(t *testing.T) {
	l := New(Options{Retention: listwatch.Retention{Bytes: 1}})
	put(l, listwatch.Key{Name: "a"}, nil)
	put(l, listwatch.Key{Name: "a"}, nil)
	if s := l.Stats(); l.records.len != 1 || s.Oldest != 1 {
		t.Errorf("%d records, floor %d; want only the newest", l.records.len, s.Oldest)
	}
}

// A stalled reader keeps in memory the node at which it stopped, but no other dropped node.
func TestStalledReaderKeepsNoDroppedRecords(t *testing.T) {
	l := New(Options{Retention: listwatch.Retention{Bytes: 1}})
	stalled := watch(t, l, listwatch.Query{})
	collected := make(chan struct{})
	old := thing(listwatch.Key{Name: "a"}, 1, nil, "")
	runtime.AddCleanup(old, func(struct{}) { close(collected) }, struct{}{})
	l.Append(Record{Version: 1, New: old})
	old = nil
	for range 3 {
		put(l, listwatch.Key{Name: "a"}, nil)
	}
	for done := false; !done; {
		runtime.GC()
		select {
		case <-collected:
			done = true
		default:
			runtime.Gosched()
		}
	}
	if _, err := stalled.Poll(make([]listwatch.Event, 1)); !errors.Is(err, listwatch.Expired) {
		t.Errorf("got %v, want Expired", err)
	}
}

// Frames of initial events do not count toward Retention.Bytes, so records must not be dropped
// because of them.
func TestInitialEventFramesDropNoRecords(t *testing.T) {
	l := New(Options{Retention: listwatch.Retention{Bytes: 1 << 20, FrameCacheBytes: -1}})
	keys := make([]listwatch.Key, 200)
	for i := range keys {
		keys[i] = listwatch.Key{Name: string(rune('A' + i))}
		put(l, keys[i], nil)
	}
	c := watch(t, l, listwatch.Query{})
	refs := make([]frames.Ref, len(keys))
	n, err := c.PollFrames(make([]listwatch.Event, len(keys)), refs)
	if n != len(keys) || err != nil {
		t.Fatalf("Poll = %d, %v", n, err)
	}
	build := func() ([]byte, error) { return make([]byte, 10<<10), nil }
	form := unique.Make[any]("form")
	for _, ref := range refs {
		if _, err := ref.Frames.GetOrBuild(form, build); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range keys {
		put(l, k, nil)
	}
	if l.records.len != 2*len(keys) || l.caches.bytes() == 0 {
		t.Errorf("%d records and %d bytes of frames, want all %d records", l.records.len, l.caches.bytes(), 2*len(keys))
	}
	l.Compact()
	if l.caches.bytes() != 0 {
		t.Errorf("%d bytes of frames are cached for dropped objects", l.caches.bytes())
	}
	if _, err := refs[0].Frames.GetOrBuild(form, build); err != nil {
		t.Error(err)
	}
	if cached := l.caches.bytes(); cached != 0 {
		t.Errorf("the frames of a dropped event were cached again: %d bytes", cached)
	}
}

// Between Append and Advance the log has a write that is newer than the Revision. A client that has
// read the Revision must still be able to watch from there after a compaction.
func TestCompactKeepsWritesNewerThanTheRevision(t *testing.T) {
	revision := new(revision.Revision)
	l := New(Options{Revision: revision})
	key := listwatch.Key{Name: "a"}
	revision.Advance(put(l, key, nil))
	newest := put(l, key, nil) // another goroutine has not called Advance yet
	l.Compact()
	c := watch(t, l, listwatch.Query{Start: listwatch.StartAt, Version: revision.Version()})
	batch := make([]listwatch.Event, 2)
	if n, err := c.Next(t.Context(), batch); err != nil || n != 1 || batch[0].Version != newest {
		t.Errorf("got %d events, %v, %v; want the event of version %d", n, err, batch[0], newest)
	}
}
