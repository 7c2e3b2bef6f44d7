package union

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// A watched is an Env whose URL is the URL of unions.
type watched struct {
	*harness.Env
	of     string       // the parameters that name both collections
	writes atomic.Int64 // the number of writes to the second collection
}

func unionOf(e *harness.Env) *watched {
	e.Helper()
	if e.Union == nil {
		e.Skipf("the server does not serve several collections as one watch")
	}
	i := *e.Instance
	i.URL = e.Union.URL
	return &watched{Env: e.WithRoute(&harness.Route{Instance: &i, Client: e.Client}), of: ofParts(e.Union.Parts[:]...)}
}

func ofParts(parts ...string) (query string) {
	for _, part := range parts {
		query += "&of=" + url.QueryEscape(part)
	}
	return query
}

// putSecond creates or changes an object of the second collection.
func (w *watched) putSecond(name string) listwatch.Version {
	w.Helper()
	v, err := w.tryPutSecond(name)
	if err != nil {
		w.Fatalf("put %s into the second collection: %v", name, err)
	}
	return v
}

func (w *watched) tryPutSecond(name string) (listwatch.Version, error) {
	w.Use(harness.Writes)
	key := harness.KeyOf(name)
	v, err := w.Union.Second.Put(w.Context(), key, fmt.Appendf(nil,
		`{"metadata":{"name":%q,"namespace":%q},"of":"second","write":%d}`, key.Name, key.Namespace, w.writes.Add(1)))
	if err != nil {
		return 0, err
	}
	return w.Record(harness.Write{Version: v, Name: name, Labels: map[string]string{}}), nil
}

// putPairs creates n objects in each collection, in turn, and returns the lines and the versions of
// their events.
func (w *watched) putPairs(prefix string, n int) (lines []string, versions []listwatch.Version) {
	w.Helper()
	for i := range n {
		first, second := fmt.Sprint(prefix, "first-", i), fmt.Sprint(prefix, "second-", i)
		versions = append(versions, w.Put(first), w.putSecond(second))
		lines = append(lines, "ADDED "+first, "ADDED "+second)
	}
	return lines, versions
}

func order(e *harness.Env) {
	w := unionOf(e)
	s := w.Dial("resourceVersion=" + w.Put("start").String() + w.of)
	lines, want := w.putPairs("", 20)
	if diff := cmp.Diff(want, harness.Versions(s.Want(lines...))); diff != "" {
		e.Errorf("the versions (-want +got):\n%s", diff)
	}
}

func snapshot(e *harness.Env) {
	w := unionOf(e)
	w.putPairs("old-", 5)
	written := make(chan error, 1)
	go func() { // ends after 50 writes
		var err error
		for i := 0; i < 25 && err == nil; i++ {
			if _, err = w.TryPut(fmt.Sprint("first-", i)); err == nil {
				_, err = w.tryPutSecond(fmt.Sprint("second-", i))
			}
		}
		written <- err
	}()
	type state struct {
		at      listwatch.Version
		objects map[string]listwatch.Version
	}
	var states []state
	for i := range 10 {
		parts := slices.Clone(w.Union.Parts[:])
		if i%2 == 1 {
			slices.Reverse(parts)
		}
		s := w.Dial(harness.InitialEvents + ofParts(parts...))
		before, synced := s.ReadBookmark()
		s.Close()
		objects, part := map[string]listwatch.Version{}, 0 // the part of the last event
		for _, o := range before {
			objects[o.Object.Key.Name] = o.Version
			of := 0
			if strings.Contains(o.Object.Key.Name, "second") != (i%2 == 1) {
				of = 1
			}
			if of < part {
				e.Errorf("the initial events of the collections are not in the order of %q", parts)
			}
			part = of
		}
		states = append(states, state{synced.Version, objects})
	}
	if err := <-written; err != nil {
		e.Fatalf("write: %v", err)
	}
	for _, got := range states {
		if want := w.StateAt(got.at); !maps.Equal(got.objects, want) {
			e.Errorf("the state at version %d (-want +got):\n%s", got.at, cmp.Diff(want, got.objects))
		}
	}
}

// resumeFromEach resumes from the version of each event. resume returns the parameters and the
// headers.
func resumeFromEach(e *harness.Env, resume func(w *watched, v listwatch.Version) (string, http.Header)) {
	w := unionOf(e)
	lines, versions := w.putPairs("", 4)
	for i, v := range versions {
		query, header := resume(w, v)
		s := w.DialRequest(query, transport.Request{Header: header})
		sentinel := w.PutSentinel()
		var got []string
		for _, event := range s.ReadUntil(sentinel) {
			if !strings.HasPrefix(event.Object.Key.Name, "sentinel") {
				got = append(got, harness.EventLine(event))
			}
		}
		s.Close()
		if diff := cmp.Diff(lines[i+1:], got); len(got)+len(lines[i+1:]) > 0 && diff != "" {
			e.Errorf("after version %d (-want +got):\n%s", v, diff)
		}
	}
}

func resume(e *harness.Env) {
	resumeFromEach(e, func(w *watched, v listwatch.Version) (string, http.Header) {
		return "resourceVersion=" + v.String() + w.of, nil
	})
}

func lastEventID(e *harness.Env) {
	resumeFromEach(e, func(w *watched, v listwatch.Version) (string, http.Header) {
		return harness.InitialEvents + w.of, http.Header{"Last-Event-Id": {v.String()}}
	})
}

func expired(e *harness.Env) {
	w := unionOf(e)
	old := w.Put("first")
	w.putSecond("second")
	w.Put("first")
	w.CompactHistory()
	w.Dial("resourceVersion=" + old.String() + w.of).WantError(listwatch.Expired)
}

func forbidden(e *harness.Env) {
	w := unionOf(e)
	w.putSecond("second")
	token := func(user string) []string { return []string{"Authorization", "Bearer " + user} }
	w.WatchRaw(w.of).WantRefused(http.StatusUnauthorized, "Unauthorized")
	w.WatchRaw(w.of, token(harness.Denied)...).WantRefused(http.StatusForbidden, "Forbidden")
	w.ListRaw(w.of, token(harness.Denied)...).WantRefused(http.StatusForbidden, "Forbidden")
	w.WatchRaw(w.of, token(harness.Allowed)...).WantAccepted()
}

func bookmark(e *harness.Env) {
	w := unionOf(e)
	s := w.Dial("allowWatchBookmarks=true&resourceVersion=" + w.Put("start").String() + w.of)
	_, versions := w.putPairs("", 2)
	for {
		_, b := s.ReadBookmark()
		for _, member := range []string{`"kind":"List"`, `"apiVersion":"v1"`} {
			if !strings.Contains(string(b.Object.Data), member) {
				e.Fatalf("got the bookmark %s, want %s", b.Object.Data, member)
			}
		}
		if b.Version < versions[len(versions)-1] {
			continue
		}
		s.Close()
		lines, _ := w.putPairs("later-", 1)
		resumed := w.Dial("resourceVersion=" + b.Version.String() + w.of)
		resumed.Want(lines...)
		return
	}
}

func difference(e *harness.Env) {
	w := unionOf(e)
	w.putPairs("", 3)
	s := w.Dial(harness.InitialEvents + w.of)
	_, synced := s.ReadBookmark()
	s.Close()
	has := synced.State()
	if has.ID == "" {
		e.Skipf("the server does not support initialEventsSince")
	}
	w.Delete("first-0")
	w.putSecond("second-1")
	s = w.Dial(fmt.Sprintf("%s&initialEventsSince=%d&initialEventsState=%s", harness.InitialEvents, has.Version,
		url.QueryEscape(has.ID)) + w.of)
	events, synced := s.ReadBookmark()
	if v, ok := synced.Since(); !ok || v != has.Version {
		e.Fatalf("got %s, want the mark of a difference since version %d: nothing was lost", synced.Object.Data, has.Version)
	}
	var got []string
	for _, event := range events {
		got = append(got, harness.EventLine(event))
	}
	if diff := cmp.Diff([]string{"DELETED first-0", "ADDED second-1"}, got); diff != "" {
		e.Errorf("the difference (-want +got):\n%s", diff)
	}
}

func conflated(e *harness.Env) {
	w := unionOf(e)
	start := w.Put("first")
	s := w.Dial(harness.From(start) + "&conflate=200ms&allowWatchBookmarks=1&timeoutSeconds=1" + w.of)
	if s.Header().Get(transport.ConflateHeader) == "" {
		e.Skipf("the server does not support conflate")
	}
	const writes = 100
	for range writes {
		w.Put("first")
		w.putSecond("second")
	}
	objects, changes, bookmarks := w.StateAt(start), 0, 0
	for {
		event, err := s.ReceiveEvent()
		if err != nil {
			break
		}
		if event.Type != listwatch.Bookmark {
			changes++
			objects[event.Object.Key.Name] = event.Version
			continue
		}
		bookmarks++
		if diff := cmp.Diff(w.StateAt(event.Version), objects); diff != "" {
			e.Fatalf("the state at the bookmark of version %d (-want +got):\n%s", event.Version, diff)
		}
	}
	if bookmarks == 0 {
		e.Errorf("the watch ended without a bookmark")
	}
	if changes > writes {
		e.Errorf("got %d events for %d states within a second, of which most were out of date", changes, 2*writes)
	}
}
