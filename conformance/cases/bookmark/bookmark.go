package bookmark

import (
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

func bookmarkOptIn(e *harness.Env) {
	e.Put("a")
	asking := e.Dial(harness.AllowBookmarks)
	silent := map[string]*harness.Watch{}
	for _, query := range []string{
		"", "resourceVersion=0", "allowWatchBookmarks=false", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", harness.From(e.Newest()),
	} {
		silent[query] = e.Dial(query)
	}
	for range 3 { // the others had as much time for theirs
		asking.ReadBookmark()
		e.Put("a")
	}
	end := e.PutSentinel()
	for _, s := range silent {
		for _, ev := range s.ReadUntil(end) {
			if ev.Type == listwatch.Bookmark || ev.Type == listwatch.Synced {
				e.Errorf("got a bookmark at %d that nobody asked for", ev.Version)
			}
		}
	}
	e.DrainWatches()
	for query, s := range silent {
		if w, err := s.Receive(); err != io.EOF {
			e.Errorf("%q: got %s %s, %v when the server drained; want nothing but the end", query, w.Type, w.Object, err)
		}
	}
}

func bookmarkShape(e *harness.Env) {
	e.Put("a")
	s := e.Dial(harness.AllowBookmarks + "labelSelector=nobody")
	for range 3 {
		w, err := s.Receive()
		if err != nil {
			e.Fatal(err)
		}
		if w.Type != "BOOKMARK" {
			e.Fatalf("got %s %s, want bookmarks alone", w.Type, w.Object)
		}
		var object map[string]any
		if err := json.Unmarshal(w.Object, &object); err != nil {
			e.Fatal(err)
		}
		metadata, _ := object["metadata"].(map[string]any)
		delete(metadata, "annotations") // the mark that ends the initial events is one, and a server may have others
		want := map[string]any{
			"kind": e.Kind, "apiVersion": object["apiVersion"], "metadata": map[string]any{"resourceVersion": metadata["resourceVersion"]},
		}
		if diff := cmp.Diff(want, object); diff != "" || metadata["resourceVersion"] == "" || object["apiVersion"] == nil {
			e.Errorf("got %s (-want +got):\n%s", w.Object, diff)
		}
	}
}

// mostBusyWrites bounds what busy writes while a reader is slow.
const mostBusyWrites = 20_000

// busy writes all the time, until the function that it returns is called, which returns all the versions.
func busy(e *harness.Env) (stop func() []listwatch.Version) {
	var wg sync.WaitGroup
	quit := make(chan struct{})
	var written []listwatch.Version
	wg.Go(func() {
		for i := range mostBusyWrites {
			select {
			case <-quit:
				return
			default:
			}
			v, err := e.TryPut([]string{"busy-a", "busy-b"}[i%2])
			if err != nil {
				e.Errorf("put: %v", err)
				return
			}
			written = append(written, v)
		}
	})
	return sync.OnceValue(func() []listwatch.Version {
		close(quit)
		wg.Wait()
		return written
	})
}

// enoughMarks is how many bookmarks a case of bookmarks among writes wants to see, the ones before the first write not counted: those say
// nothing.
const enoughMarks = 8

// bookmarkSound counts what came before each bookmark.
func bookmarkSound(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.AllowBookmarks + harness.From(start))
	stop := busy(e)
	defer stop()
	type mark struct {
		at     listwatch.Version
		before int // events in all before it
	}
	var marks []mark
	var seen []listwatch.Version
	for len(marks) < enoughMarks {
		before, b := s.ReadBookmark()
		if seen = append(seen, harness.Versions(before)...); len(seen) == 0 {
			continue
		}
		marks = append(marks, mark{b.Version, len(seen)})
	}
	written := stop()
	for _, m := range marks {
		if want := count(written, start, m.at); m.before != want {
			e.Errorf("before the bookmark at %d came %d events, and there were %d writes up to it", m.at, m.before, want)
		}
	}
}

// count returns how many versions are after and up to two others.
func count(all []listwatch.Version, after, upTo listwatch.Version) (n int) {
	for _, v := range all {
		if v > after && v <= upTo {
			n++
		}
	}
	return n
}

func bookmarkMonotone(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.AllowBookmarks + harness.From(start))
	stop := busy(e)
	defer stop()
	last := start
	for marks := 0; marks < enoughMarks; {
		ev := s.Next()
		switch isMark := ev.Type == listwatch.Bookmark; {
		case ev.Version < last, !isMark && ev.Version == last:
			e.Fatalf("got %s at %d after %d", harness.Line(ev), ev.Version, last)
		case isMark && last > start:
			marks++
		}
		last = ev.Version
	}
}

func bookmarkIdleProgress(e *harness.Env) {
	e.Put("a")
	s := e.Dial(harness.AllowBookmarks + harness.LabelSelector("on=yes") + "&" + harness.From(e.Newest()))
	for range 5 {
		written := e.Put("a")
		start := time.Now()
		var at listwatch.Version
		for at < written {
			before, b := s.ReadBookmark()
			if len(before) > 0 {
				e.Fatalf("got %s, want nothing but bookmarks", harness.Line(before[0]))
			}
			at = b.Version
		}
		if took := time.Since(start); took > mostBookmarkPeriod {
			e.Errorf("the bookmark came %v after the write, want at most %v", took, mostBookmarkPeriod)
		}
	}
}

func bookmarkResume(e *harness.Env) {
	s := e.Dial(harness.AllowBookmarks + harness.LabelSelector("on=yes"))
	e.Put("a", "on", "yes")
	for range 5 {
		hidden := e.Put("b", "on", "no")
		var at listwatch.Version
		for at < hidden {
			_, b := s.ReadBookmark()
			at = b.Version
		}
		s.Close()
		next := e.Put("a", "on", "yes")
		s = e.Dial(harness.AllowBookmarks + harness.LabelSelector("on=yes") + "&" + harness.From(at))
		if got := s.Next(); got.Version != next || got.Type != listwatch.Modified {
			e.Fatalf("resumed from the bookmark at %d: got %s at %d first, want the write of %d", at, harness.Line(got), got.Version, next)
		}
	}
}

func bookmarkBeforeTimeout(e *harness.Env) {
	const seconds = 40
	e.Put("a", "on", "no")
	s := e.Dial(harness.AllowBookmarks + harness.LabelSelector("on=yes") + "&timeoutSeconds=40&" + harness.From(e.Newest()))
	start := time.Now()
	hidden := e.Put("b", "on", "no") // nothing tells of it but a bookmark
	var marks []listwatch.Version
	for {
		w, err := s.Receive()
		if err == io.EOF {
			break
		}
		if err != nil {
			e.Fatal(err)
		}
		ev, err := w.Event()
		if err != nil || ev.Type != listwatch.Bookmark {
			e.Fatalf("got %s %s, %v; want bookmarks alone", w.Type, w.Object, err)
		}
		marks = append(marks, ev.Version)
	}
	if took := time.Since(start); took < (seconds-4)*time.Second || took > (seconds+4)*time.Second {
		e.Errorf("the watch ended after %v, want %d s", took, seconds)
	}
	if !slices.Contains(marks, hidden) {
		e.Errorf("got bookmarks %d, want one at the newest version, %d", marks, hidden)
	}
}

func bookmarkNeverFromFuture(e *harness.Env) {
	start := e.Put("a")
	s := e.Dial(harness.AllowBookmarks + harness.LabelSelector("nobody") + "&" + harness.From(start))
	acked := start
	for range 20 {
		_, b := s.ReadBookmark()
		if b.Version > acked {
			e.Fatalf("got a bookmark at %d when the newest write was %d", b.Version, acked)
		}
		acked = e.Put("a")
	}
}

func bookmarkNotToHandlers(e *harness.Env) {
	mark := func(rv string) listwatch.Event {
		b := harness.AddedEvent("", rv)
		b.Type = listwatch.Bookmark
		return b
	}
	asked := make(chan string, 1)
	_, at := e.ServeInTurn(e.SendThenEnd(harness.AddedEvent("a", "5"), mark("7"), harness.AddedEvent("b", "8"), mark("9")), harness.RecordVersion(asked))
	w := e.Follow(e.Remote(at), 1)
	for _, want := range []string{"a", "b"} {
		got, err := e.NextOf(w)
		for ; err == nil && got.Type == listwatch.Bookmark; got, err = e.NextOf(w) {
			e.Errorf("the watcher, which did not ask for bookmarks, was shown one at %d", got.Version)
		}
		if err != nil || got.Object.Key.Name != want {
			e.Fatalf("got %v, %v; want %s", got, err, want)
		}
	}
	if got := <-asked; got != "9" {
		e.Errorf("the client resumed from %s, want 9: a bookmark moves it on", got)
	}
}
