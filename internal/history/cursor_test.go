package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/internal/testkit"
)

// put writes an object under the next version and returns the version.
func put(l *Log, key listwatch.Key, labels map[string]string) listwatch.Version {
	v := l.Stats().Newest + 1
	l.Append(Record{Version: v, Old: l.Get(key), New: thing(key, v, labels, "n1")})
	return v
}

func watch(t testing.TB, l *Log, q listwatch.Query) *Cursor {
	t.Helper()
	return testkit.Watch(t, l, q).(*Cursor)
}

// feedOf returns the feed of c, which is the cursor of a log.
func feedOf(c *Cursor) *feed { return c.last.(*live).feed }

func TestNextWaitsForAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		c := watch(t, l, listwatch.Query{})
		got := make(chan listwatch.Event)
		go func() {
			var batch [4]listwatch.Event
			if n, err := c.Next(t.Context(), batch[:]); n != 1 || err != nil {
				t.Errorf("Next = %d, %v; want one event", n, err)
			}
			got <- batch[0]
		}()
		synctest.Wait()
		v := put(l, listwatch.Key{Name: "a"}, nil)
		if e := <-got; e.Type != listwatch.Added || e.Version != v || e.Initial {
			t.Errorf("got %+v, want a live ADDED at %d", e, v)
		}
	})
}

func TestNextWorksAgainAfterItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		c := watch(t, l, listwatch.Query{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Next(ctx, make([]listwatch.Event, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the error of the context", err)
		}
		put(l, listwatch.Key{Name: "a"}, nil)
		if n, err := c.Next(t.Context(), make([]listwatch.Event, 1)); n != 1 || err != nil {
			t.Fatalf("Next = %d, %v after a timeout, want the event", n, err)
		}
	})
}

func TestCloseWakesTheReader(t *testing.T) {
	for _, q := range []listwatch.Query{{}, {Start: listwatch.StartAt, Version: 1 << 40}} {
		synctest.Test(t, func(t *testing.T) {
			c := watch(t, New(Options{}), q)
			ended := make(chan error)
			go func() {
				_, err := c.Next(t.Context(), make([]listwatch.Event, 1))
				ended <- err
			}()
			synctest.Wait()
			c.Close()
			if err := <-ended; err != io.EOF {
				t.Errorf("Next = %v on a closed cursor, want io.EOF", err)
			}
			c.Close() // a second call has no effect
		})
	}
}

func TestWriteWakesOnlyMatchingWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		woken := make(map[string]int)
		var mu sync.Mutex
		arm := func(name string, q listwatch.Query) *Cursor {
			c := watch(t, l, q)
			if n, err := c.Poll(make([]listwatch.Event, 1)); n != 0 || err != nil {
				t.Fatalf("Poll = %d, %v on an empty log", n, err)
			}
			c.Wake(func() {
				mu.Lock()
				defer mu.Unlock()
				woken[name]++
			})
			return c
		}
		red := arm("red", listwatch.Query{Selection: listwatch.Selection{Labels: testkit.Labels(t, "app=red")}})
		blue := arm("blue", listwatch.Query{Selection: listwatch.Selection{Labels: testkit.Labels(t, "app=blue")}})
		arm("namespace", listwatch.Query{Selection: listwatch.Selection{Namespace: "other"}})
		arm("all", listwatch.Query{})
		var v listwatch.Version
		for range 3 {
			v = put(l, listwatch.Key{Namespace: "ns", Name: "a"}, map[string]string{"app": "red"})
		}
		synctest.Wait()
		if want := fmt.Sprint(map[string]int{"all": 1, "red": 1}); fmt.Sprint(woken) != want {
			t.Errorf("woken %v, want %v: one call per Wake", woken, want)
		}
		if p := blue.Progress().Version; p != v {
			t.Errorf("a watcher without events is at position %d, want the newest version %d", p, v)
		}
		if p := red.Progress().Version; p >= v-1 {
			t.Errorf("a watcher with unread events is at position %d, want less than the first of them", p)
		}
	})
}

func TestWatchStartsExactlyAtAFutureVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		put(l, listwatch.Key{Name: "a"}, nil)
		c := watch(t, l, listwatch.Query{Start: listwatch.StartAt, Version: 3})
		go func() {
			time.Sleep(revision.Timeout / 2)
			for range 3 {
				put(l, listwatch.Key{Name: "a"}, nil)
			}
		}()
		e := make([]listwatch.Event, 4)
		if n, err := c.Next(t.Context(), e); n != 1 || err != nil || e[0].Version != 4 {
			t.Fatalf("Next = %d, %v, first at %d; want only the write at 4", n, err, e[0].Version)
		}
	})
}

func TestFutureVersionTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		start := time.Now()
		c := watch(t, l, listwatch.Query{Start: listwatch.StartAt, Version: 3})
		_, err := c.Next(t.Context(), make([]listwatch.Event, 1))
		if !errors.Is(err, listwatch.NotYet) || time.Since(start) != revision.Timeout {
			t.Errorf("watch: got %v after %v, want NotYet after %v", err, time.Since(start), revision.Timeout)
		}
		start = time.Now()
		_, err = l.List(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 3})
		if !errors.Is(err, listwatch.NotYet) || time.Since(start) != revision.Timeout {
			t.Errorf("list: got %v after %v, want NotYet after %v", err, time.Since(start), revision.Timeout)
		}
	})
}

func TestCompactExpiresOnlyLaggingWatches(t *testing.T) {
	l := New(Options{})
	v := put(l, listwatch.Key{Name: "a"}, nil)
	idle := watch(t, l, listwatch.Query{Start: listwatch.StartAt, Version: v})
	behind := watch(t, l, listwatch.Query{Start: listwatch.StartAt, Version: v - 1})
	put(l, listwatch.Key{Name: "b"}, nil)
	idle.Poll(make([]listwatch.Event, 9))
	l.Compact()
	put(l, listwatch.Key{Name: "c"}, nil)
	e := make([]listwatch.Event, 9)
	if n, err := idle.Poll(e); n != 1 || err != nil || e[0].Object.Key.Name != "c" {
		t.Errorf("idle watch: %d, %v, %+v; want the write after the compaction", n, err, e[0])
	}
	if _, err := behind.Poll(e); !errors.Is(err, listwatch.Expired) {
		t.Errorf("lagging watch: %v, want Expired", err)
	}
	for back := range listwatch.Version(4) {
		_, err := l.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 3 - back})
		if (back > 1) != errors.Is(err, listwatch.Expired) {
			t.Errorf("watch from %d with floor 2: %v", 3-back, err)
		}
	}
}

func TestIdleFeedIsRemovedAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		for range 3 {
			c := watch(t, l, listwatch.Query{Selection: listwatch.Selection{Labels: testkit.Labels(t, "app in (a,b)")}})
			c.Close()
			time.Sleep(feedIdleTimeout / 2)
		}
		put(l, listwatch.Key{Name: "a"}, nil)
		if n, _ := feedsOf(l); n != 1 {
			t.Errorf("%d feeds before the timeout, want 1", n)
		}
		time.Sleep(feedIdleTimeout)
		synctest.Wait()
		if len(l.feeds.bySelection) != 0 || len(l.feeds.byTerm) != 0 {
			t.Errorf("%d feeds and %d terms after %v without a watcher, want none", len(l.feeds.bySelection),
				len(l.feeds.byTerm), feedIdleTimeout)
		}
	})
}

func TestConcurrentReadersSeeEveryWriteOnce(t *testing.T) {
	const writes, readers = 2000, 16
	l := New(Options{})
	var group sync.WaitGroup
	for i := range readers {
		group.Go(func() {
			q := listwatch.Query{}
			if i%2 == 1 {
				q.Labels = testkit.Labels(t, "parity=odd")
			}
			readAll(t, l, q, i)
		})
	}
	for i := range writes {
		put(l, listwatch.Key{Name: fmt.Sprint(i % 10)}, map[string]string{"parity": []string{"even", "odd"}[i%2]})
	}
	put(l, listwatch.Key{Name: "last"}, map[string]string{"parity": "odd"})
	group.Wait()
}

// readAll reads all events up to the object "last". It uses several watches, each of which
// resumes where the previous one has ended.
func readAll(t *testing.T, l *Log, q listwatch.Query, i int) {
	state := make(map[string]listwatch.Version)
	var at listwatch.Version
	for {
		c := watch(t, l, q)
		for range 50 + i {
			batch := make([]listwatch.Event, 1+i)
			n, err := c.Next(t.Context(), batch)
			if err != nil {
				t.Errorf("reader %d: %v", i, err)
				return
			}
			for _, e := range batch[:n] {
				name := e.Object.Key.Name
				if !e.Initial && e.Version <= at || e.Type == listwatch.Added && state[name] != 0 ||
					e.Type != listwatch.Added && state[name] == 0 {
					t.Errorf("reader %d at %d: unexpected %v of %s at %d", i, at, e.Type, name, e.Version)
					return
				}
				if state[name] = e.Version; e.Type == listwatch.Deleted {
					delete(state, name)
				}
				if name == "last" {
					return
				}
			}
			if p := c.Progress().Version; p != 0 {
				at = p
			}
		}
		if c.Close(); at == 0 {
			clear(state)
			continue
		}
		q.Start, q.Version = listwatch.StartAt, at
	}
}
