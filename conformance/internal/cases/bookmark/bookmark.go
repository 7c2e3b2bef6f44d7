package bookmark

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

func bookmarkOptIn(e *harness.Env) {
	e.Put("a")
	requested := e.Dial(harness.AllowBookmarks)
	others := map[string]*harness.Watch{}
	for _, query := range []string{
		"", "resourceVersion=0", "allowWatchBookmarks=false",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan", harness.From(e.Newest()),
	} {
		others[query] = e.Dial(query)
	}
	// While this watch receives three bookmarks, the server has time to send unwanted
	// bookmarks to the other watches.
	for range 3 {
		requested.ReadBookmark()
		e.Put("a")
	}
	sentinel := e.PutSentinel()
	for _, s := range others {
		for _, ev := range s.ReadUntil(sentinel) {
			if ev.Type == listwatch.Bookmark || ev.Type == listwatch.Synced {
				e.Errorf("got a bookmark at version %d that was not requested", ev.Version)
			}
		}
	}
	e.DrainWatches()
	for query, s := range others {
		if w, err := s.Receive(); err != io.EOF {
			e.Errorf("%q: got %s %s, %v when the server drained; want a clean end", query, w.Type, w.Object, err)
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
			e.Fatalf("got %s %s, want only bookmarks", w.Type, w.Object)
		}
		var object map[string]any
		if err := json.Unmarshal(w.Object, &object); err != nil {
			e.Fatal(err)
		}
		metadata, _ := object["metadata"].(map[string]any)
		// Ignore annotations: one marks the end of the initial events, and a server may add
		// others.
		delete(metadata, "annotations")
		want := map[string]any{
			"kind": e.Kind, "apiVersion": object["apiVersion"],
			"metadata": map[string]any{"resourceVersion": metadata["resourceVersion"]},
		}
		if diff := cmp.Diff(want, object); diff != "" || metadata["resourceVersion"] == "" ||
			object["apiVersion"] == nil {
			e.Errorf("got %s (-want +got):\n%s", w.Object, diff)
		}
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
				e.Fatalf("got %s, want only bookmarks", harness.EventLine(before[0]))
			}
			at = b.Version
		}
		if took := time.Since(start); took > maxBookmarkPeriod {
			e.Errorf("the bookmark came %v after the write, want at most %v", took, maxBookmarkPeriod)
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
			e.Fatalf("resumed from the bookmark at version %d: the first event is %s at version %d, want the write "+
				"at version %d", at, harness.EventLine(got), got.Version, next)
		}
	}
}

func bookmarkBeforeTimeout(e *harness.Env) {
	const seconds = 40
	e.Put("a", "on", "no")
	s := e.Dial(harness.AllowBookmarks + harness.LabelSelector("on=yes") + "&timeoutSeconds=40&" +
		harness.From(e.Newest()))
	start := time.Now()
	hidden := e.Put("b", "on", "no") // excluded by the selector, so only a bookmark reports it
	var bookmarks []listwatch.Version
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
			e.Fatalf("got %s %s, %v; want only bookmarks", w.Type, w.Object, err)
		}
		bookmarks = append(bookmarks, ev.Version)
	}
	if took := time.Since(start); took < (seconds-4)*time.Second || took > (seconds+4)*time.Second {
		e.Errorf("the watch ended after %v, want %d s", took, seconds)
	}
	if !slices.Contains(bookmarks, hidden) {
		e.Errorf("got bookmarks at versions %d, want one at the newest version, %d", bookmarks, hidden)
	}
}

func bookmarkNotToHandlers(e *harness.Env) {
	bookmark := func(rv string) listwatch.Event {
		b := harness.AddedEvent("", rv)
		b.Type = listwatch.Bookmark
		return b
	}
	versions := make(chan string, 1)
	_, route := e.ServeSequence(e.SendThenEnd(harness.AddedEvent("a", "5"), bookmark("7"), harness.AddedEvent("b", "8"),
		bookmark("9")), harness.RecordVersion(versions))
	w := e.Follow(e.Remote(route), 1)
	for _, want := range []string{"a", "b"} {
		got, err := e.NextOf(w)
		for ; err == nil && got.Type == listwatch.Bookmark; got, err = e.NextOf(w) {
			e.Errorf("the client returned a bookmark at version %d that the watcher did not request", got.Version)
		}
		if err != nil || got.Object.Key.Name != want {
			e.Fatalf("got %s, want %s", harness.Got(got, err), want)
		}
	}
	if got := e.Await(versions, "a request that resumes"); got != "9" {
		e.Errorf("the client resumed from version %s, want 9, the version of the last bookmark", got)
	}
}
