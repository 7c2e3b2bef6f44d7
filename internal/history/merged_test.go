package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/internal/testkit"
)

// newUnion returns a union of n logs.
func newUnion(t *testing.T, n int) (*Union, *revision.Revision, []*Log) {
	t.Helper()
	revision := new(revision.Revision)
	logs := make([]*Log, n)
	parts := make([]Part, n)
	for i := range logs {
		logs[i] = New(Options{Revision: revision, Description: listwatch.Description{Kind: fmt.Sprint("Kind", i)}})
		parts[i].Log = logs[i]
	}
	u, err := NewUnion("epoch", parts)
	if err != nil {
		t.Fatal(err)
	}
	return u, revision, logs
}

func watchUnion(t *testing.T, u *Union, q listwatch.Query) *Cursor {
	t.Helper()
	return testkit.Watch(t, u, q).(*Cursor)
}

func appendThing(l *Log, v listwatch.Version) {
	key := listwatch.Key{Name: "a"}
	l.Append(Record{Version: v, Old: l.Get(key), New: thing(key, v, nil, "n1")})
}

// An event that was appended before the revision reaches its version wakes the union when the
// revision does, and not before.
func TestUnionWakesAtTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, revision, logs := newUnion(t, 1)
		c := watchUnion(t, u, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
		appendThing(logs[0], 1)
		var batch [4]listwatch.Event
		var woken atomic.Int32
		for range 2 { // the second Wake replaces the function of the first
			if n, err := c.Poll(batch[:]); n != 0 || err != nil {
				t.Fatalf("Poll before the revision = %d, %v; want nothing", n, err)
			}
			c.Wake(func() { woken.Add(1) })
		}
		synctest.Wait()
		if woken.Load() != 0 {
			t.Fatal("woken before the revision was advanced")
		}
		revision.Advance(1)
		synctest.Wait()
		if n, err := c.Poll(batch[:]); woken.Load() != 1 || n != 1 || err != nil {
			t.Errorf("woken %d times, Poll = %d, %v; want once, and one event", woken.Load(), n, err)
		}
	})
}

func TestUnionWakesForEachPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, revision, logs := newUnion(t, 3)
		c := watchUnion(t, u, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
		for v := listwatch.Version(1); v <= 6; v++ {
			got := make(chan listwatch.Version)
			go func() { // ends with the event
				var batch [4]listwatch.Event
				n, err := c.Next(t.Context(), batch[:])
				if n != 1 || err != nil {
					t.Errorf("Next = %d, %v; want one event", n, err)
				}
				got <- batch[0].Version
			}()
			synctest.Wait()
			appendThing(logs[v%3], v)
			synctest.Wait()
			revision.Advance(v)
			if version := <-got; version != v {
				t.Errorf("got an event at %d, want %d", version, v)
			}
		}
	})
}

func TestCloseEndsAWaitingUnion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, pending := range []bool{false, true} {
			u, revision, logs := newUnion(t, 1)
			c := watchUnion(t, u, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
			if pending {
				appendThing(logs[0], 1)
			}
			go func() {
				synctest.Wait()
				c.Close()
			}()
			var batch [1]listwatch.Event
			if n, err := c.Next(t.Context(), batch[:]); n != 0 || err != io.EOF {
				t.Errorf("Next after Close = %d, %v; want io.EOF", n, err)
			}
			if n := revision.Waiters(); n != 0 {
				t.Errorf("%d callbacks of the revision remain after Close", n)
			}
		}
	})
}

// While several writers write through one lock, a reader receives all events in order.
func TestUnionKeepsOrderWithConcurrentWriters(t *testing.T) {
	u, revision, logs := newUnion(t, 4)
	c := watchUnion(t, u, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
	var writers sync.WaitGroup
	var mu sync.Mutex
	var last listwatch.Version
	const writes = 2000
	for i := range logs {
		writers.Go(func() {
			for range writes {
				mu.Lock()
				last++
				v := last
				appendThing(logs[i], v)
				mu.Unlock()
				revision.Advance(v)
			}
		})
	}
	var batch [16]listwatch.Event
	for next := listwatch.Version(1); next <= writes*4; {
		n, err := c.Next(t.Context(), batch[:])
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch[:n] {
			if e.Version != next {
				t.Fatalf("got the event at %d, want %d", e.Version, next)
			}
			next++
		}
		if at := c.Progress().Version; at < next-1 {
			t.Fatalf("position %d after the event at %d", at, next-1)
		}
	}
	writers.Wait()
}

// A write to the first part after it was polled, and one to the last part before it is polled, are
// not returned in the wrong order. Loading the revision after polling fails within some thousand
// rounds.
func TestUnionLoadsTheRevisionFirst(t *testing.T) {
	u, revision, logs := newUnion(t, 32)
	c := watchUnion(t, u, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
	var batch [4]listwatch.Event
	next, start := listwatch.Version(1), time.Now()
	// On a busy machine, each round waits for the scheduler twice.
	for round := 0; round < 20_000 && (round < 100 || time.Since(start) < time.Second/2); round++ {
		v := next
		done := make(chan struct{})
		go func() { // ends after two writes
			defer close(done)
			appendThing(logs[0], v)
			appendThing(logs[31], v+1)
			revision.Advance(v + 1)
		}()
		for next < v+2 {
			n, err := c.Poll(batch[:])
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch[:n] {
				if e.Version != next {
					t.Fatalf("round %d: got the event at %d, want %d", round, e.Version, next)
				}
				next++
			}
		}
		<-done
	}
}

func TestUnionRefusesPartsThatDoNotFit(t *testing.T) {
	one, other := New(Options{}), New(Options{})
	for name, parts := range map[string][]Part{
		"none": nil, "another database": {{Log: one}, {Log: other}}, "the same collection": {{Log: one}, {Log: one}},
	} {
		if u, err := NewUnion("", parts); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%s: got %v, %v; want Invalid", name, u, err)
		}
	}
}

func TestUnionBookmarkNamesTheTypes(t *testing.T) {
	u, revision, _ := newUnion(t, 2)
	revision.Advance(7)
	c := watchUnion(t, u, listwatch.Query{Bookmarks: true})
	var batch [4]listwatch.Event
	n, err := c.Poll(batch[:])
	if n != 1 || err != nil || batch[0].Type != listwatch.Synced || batch[0].Version != 7 {
		t.Fatalf("Poll = %d, %v with %+v; want the bookmark at 7", n, err, batch[0])
	}
	if parts := batch[0].Parts(); len(parts) != 2 || parts[0].Kind != "Kind0" || parts[1].Kind != "Kind1" {
		t.Errorf("got the parts %+v", parts)
	}
}

// A part that has lost events ends the union before any later event of another part.
func TestUnionExpiresWithAPart(t *testing.T) {
	u, revision, logs := newUnion(t, 2)
	c := watchUnion(t, u, listwatch.Query{InitialEvents: listwatch.InitialEventsNo})
	appendThing(logs[0], 1)
	appendThing(logs[1], 2)
	revision.Advance(2)
	logs[0].Compact()
	var batch [4]listwatch.Event
	if n, err := c.Poll(batch[:]); n != 0 || !errors.Is(err, listwatch.Expired) {
		t.Errorf("Poll = %d, %v; want Expired and no event", n, err)
	}
	if at := c.Progress().Version; at != 0 {
		t.Errorf("position %d after Expired, want 0", at)
	}
	_, err := u.Watch(context.Background(), listwatch.Query{Start: listwatch.StartAt, Version: 1})
	if !errors.Is(err, listwatch.Expired) {
		t.Errorf("resume: got %v, want Expired", err)
	}
}

func TestUnionWaitsForAFutureVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, revision, logs := newUnion(t, 2)
		go func() {
			synctest.Wait()
			appendThing(logs[1], 5)
			revision.Advance(5)
		}()
		c := watchUnion(t, u,
			listwatch.Query{Start: listwatch.StartAt, Version: 5, InitialEvents: listwatch.InitialEventsYes})
		var batch [4]listwatch.Event
		if n, err := c.Poll(batch[:]); n != 1 || err != nil || c.Progress().Version != 5 {
			t.Errorf("Poll = %d, %v at %d; want the object at 5", n, err, c.Progress().Version)
		}
		_, err := u.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 6})
		if !errors.Is(err, listwatch.NotYet) {
			t.Errorf("got %v, want NotYet", err)
		}
	})
}
