package cases

import (
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
)

const allowBookmarks = "allowWatchBookmarks=true&"

// bookmark reads up to the next bookmark, and returns it and the events before it.
func (s *stream) bookmark() (before []listwatch.Event, b listwatch.Event) {
	s.Helper()
	for {
		e := s.next()
		if e.Type == listwatch.Bookmark || e.Type == listwatch.Synced {
			return before, e
		}
		before = append(before, e)
	}
}

func bookmarkOptIn(e *env) {
	e.put("a")
	asking := e.dial(allowBookmarks)
	silent := map[string]*stream{}
	for _, query := range []string{
		"", "resourceVersion=0", "allowWatchBookmarks=false", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", from(e.newest()),
	} {
		silent[query] = e.dial(query)
	}
	for range 3 { // the others had as much time for theirs
		asking.bookmark()
		e.put("a")
	}
	end := e.sentinel()
	for _, s := range silent {
		for _, ev := range s.until(end) {
			if ev.Type == listwatch.Bookmark || ev.Type == listwatch.Synced {
				e.Errorf("got a bookmark at %d that nobody asked for", ev.Version)
			}
		}
	}
	e.drain()
	for query, s := range silent {
		if w, err := s.Receive(); err != io.EOF {
			e.Errorf("%q: got %s %s, %v when the server drained; want nothing but the end", query, w.Type, w.Object, err)
		}
	}
}

func bookmarkShape(e *env) {
	e.put("a")
	s := e.dial(allowBookmarks + "labelSelector=nobody")
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
func (e *env) busy() (stop func() []listwatch.Version) {
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
			v, err := e.tryPut([]string{"busy-a", "busy-b"}[i%2])
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
func bookmarkSound(e *env) {
	start := e.put("a")
	s := e.dial(allowBookmarks + from(start))
	stop := e.busy()
	defer stop()
	type mark struct {
		at     listwatch.Version
		before int // events in all before it
	}
	var marks []mark
	var seen []listwatch.Version
	for len(marks) < enoughMarks {
		before, b := s.bookmark()
		if seen = append(seen, versions(before)...); len(seen) == 0 {
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

func bookmarkMonotone(e *env) {
	start := e.put("a")
	s := e.dial(allowBookmarks + from(start))
	stop := e.busy()
	defer stop()
	last := start
	for marks := 0; marks < enoughMarks; {
		ev := s.next()
		switch isMark := ev.Type == listwatch.Bookmark; {
		case ev.Version < last, !isMark && ev.Version == last:
			e.Fatalf("got %s at %d after %d", line(ev), ev.Version, last)
		case isMark && last > start:
			marks++
		}
		last = ev.Version
	}
}

func bookmarkIdleProgress(e *env) {
	e.put("a")
	s := e.dial(allowBookmarks + labelled("on=yes") + "&" + from(e.newest()))
	for range 5 {
		written := e.put("a")
		start := time.Now()
		var at listwatch.Version
		for at < written {
			before, b := s.bookmark()
			if len(before) > 0 {
				e.Fatalf("got %s, want nothing but bookmarks", line(before[0]))
			}
			at = b.Version
		}
		if took := time.Since(start); took > mostBookmarkPeriod {
			e.Errorf("the bookmark came %v after the write, want at most %v", took, mostBookmarkPeriod)
		}
	}
}

func bookmarkResume(e *env) {
	s := e.dial(allowBookmarks + labelled("on=yes"))
	e.put("a", "on", "yes")
	for range 5 {
		hidden := e.put("b", "on", "no")
		var at listwatch.Version
		for at < hidden {
			_, b := s.bookmark()
			at = b.Version
		}
		s.Close()
		next := e.put("a", "on", "yes")
		s = e.dial(allowBookmarks + labelled("on=yes") + "&" + from(at))
		if got := s.next(); got.Version != next || got.Type != listwatch.Modified {
			e.Fatalf("resumed from the bookmark at %d: got %s at %d first, want the write of %d", at, line(got), got.Version, next)
		}
	}
}

func bookmarkBeforeTimeout(e *env) {
	const seconds = 40
	e.put("a", "on", "no")
	s := e.dial(allowBookmarks + labelled("on=yes") + "&timeoutSeconds=40&" + from(e.newest()))
	start := time.Now()
	hidden := e.put("b", "on", "no") // nothing tells of it but a bookmark
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

func bookmarkNeverFromFuture(e *env) {
	start := e.put("a")
	s := e.dial(allowBookmarks + labelled("nobody") + "&" + from(start))
	acked := start
	for range 20 {
		_, b := s.bookmark()
		if b.Version > acked {
			e.Fatalf("got a bookmark at %d when the newest write was %d", b.Version, acked)
		}
		acked = e.put("a")
	}
}

func bookmarkNotToHandlers(e *env) {
	mark := func(rv string) listwatch.Event {
		b := added("", rv)
		b.Type = listwatch.Bookmark
		return b
	}
	asked := make(chan string, 1)
	_, at := e.play(e.sends(added("a", "5"), mark("7"), added("b", "8"), mark("9")), recordVersion(asked))
	w := e.follow(e.remote(at), 1)
	for _, want := range []string{"a", "b"} {
		got, err := e.nextOf(w)
		for ; err == nil && got.Type == listwatch.Bookmark; got, err = e.nextOf(w) {
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
