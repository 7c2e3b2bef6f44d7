package initial

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// initial reads the initial events, and returns them by name with the version of the bookmark that ends them.
func initial(s *harness.Watch) (state map[string]listwatch.Version, at listwatch.Version) {
	s.Helper()
	state = map[string]listwatch.Version{}
	for {
		e := s.Next()
		switch {
		case e.Type == listwatch.Synced:
			return state, e.Version
		case e.Type != listwatch.Added:
			s.Fatalf("got %s at %d among the initial events", harness.Line(e), e.Version)
		}
		name := strings.TrimPrefix(harness.Line(e), "ADDED ")
		if _, twice := state[name]; twice {
			s.Fatalf("%s is twice among the initial events", name)
		}
		state[name] = e.Version
	}
}

func initialStream(e *harness.Env) {
	for _, name := range []string{"c", "a", "b", "a"} {
		e.Put(name)
	}
	s := e.Dial(harness.InitialEvents[1:])
	changed := e.Put("b")
	got := s.Want("ADDED a", "ADDED b", "ADDED c", "BOOKMARK")
	if end := got[3]; end.Type != listwatch.Synced {
		e.Errorf("the bookmark that ends the initial events is not marked: %s", end.Object.Data)
	}
	if got[1].Version == changed { // it was quicker than the request
		return
	}
	if next := s.Want("MODIFIED b")[0]; next.Version != changed {
		e.Errorf("got version %d behind the initial events, want that of the next write, %d", next.Version, changed)
	}
}

func initialSnapshotExact(e *harness.Env) {
	for i := range 30 {
		e.Put(fmt.Sprintf("x%d", i%7))
		if i%5 == 4 {
			e.Delete(fmt.Sprintf("x%d", i%7))
		}
		if i%3 != 0 {
			continue
		}
		s := e.Dial(harness.InitialEvents[1:])
		state, at := initial(s)
		if diff := cmp.Diff(e.StateAt(at), state); diff != "" {
			e.Fatalf("the initial events are not the state at %d (-want +got):\n%s", at, diff)
		}
		s.Close()
	}
}

func initialFresh(e *harness.Env) {
	for range 30 {
		acked := e.Put("a")
		s := e.Dial(harness.InitialEvents[1:])
		if state, at := initial(s); at < acked || state["a"] != acked {
			e.Fatalf("a write was acknowledged at %d, and the initial events show %v at %d", acked, state, at)
		}
		s.Close()
	}
}

func initialNotOlderThan(e *harness.Env) {
	old := e.Put("a")
	for range 5 {
		asked := e.Put("a")
		for _, version := range []listwatch.Version{old, asked} {
			s := e.Dial(harness.From(version) + harness.InitialEvents)
			if state, at := initial(s); at < version || state["a"] < version {
				e.Fatalf("asked for %d or later, and the initial events show %v at %d", version, state, at)
			}
			s.Close()
		}
	}
}

func initialOneEndMarker(e *harness.Env) {
	e.Put("a")
	s := e.Dial(harness.InitialEvents[1:])
	initial(s)
	for range 4 {
		written := e.Put("a")
		for at := listwatch.Version(0); at < written; {
			_, b := s.ReadBookmark()
			if at = b.Version; b.Type == listwatch.Synced {
				e.Fatalf("the mark of the end came again, at %d", at)
			}
		}
	}
}

func initialMatchRequired(e *harness.Env) {
	for _, query := range []string{
		"sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=5", "sendInitialEvents=false",
		"sendInitialEvents=true&resourceVersion=5&allowWatchBookmarks=true",
	} {
		s := e.WatchRaw(query).WantRefused(http.StatusUnprocessableEntity, "Invalid")
		if s.Details == nil || !slices.ContainsFunc(s.Details.Causes, func(c listwatch.Cause) bool { return c.Field == "resourceVersionMatch" }) {
			e.Errorf("%s: got details %+v, want a cause that names resourceVersionMatch", query, s.Details)
		}
	}
}

func initialMatchAlone(e *harness.Env) {
	for _, match := range []string{"NotOlderThan", "Exact"} {
		e.WatchRaw("resourceVersion=5&resourceVersionMatch="+match).WantRefused(http.StatusUnprocessableEntity, "Invalid")
	}
}

func initialForbiddenOnList(e *harness.Env) {
	for _, query := range []string{"sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "sendInitialEvents=true", "sendInitialEvents=false"} {
		e.ListRaw(query).WantRefused(http.StatusUnprocessableEntity, "Invalid")
	}
}

func initialFalse(e *harness.Env) {
	e.Put("a")
	for _, version := range []string{"", "&resourceVersion=0"} {
		s := e.Dial("sendInitialEvents=false&resourceVersionMatch=NotOlderThan" + version)
		if before := s.ReadUntil(e.PutSentinel()); len(before) > 0 {
			e.Errorf("%q: got %s first, want nothing but what is written from now on", version, harness.Line(before[0]))
		}
	}
}

func initialLegacy(e *harness.Env) {
	e.Put("b")
	e.Put("a")
	for _, query := range []string{"", "resourceVersion=", "resourceVersion=0"} {
		s := e.Dial(query)
		s.Want("ADDED a", "ADDED b")
		end := e.PutSentinel()
		if before := s.ReadUntil(end); len(before) > 0 {
			e.Errorf("%q: got %s behind the state, want the next write", query, harness.Line(before[0]))
		}
		e.Delete(end)
		s.Close()
	}
}

func initialEmpty(e *harness.Env) {
	s := e.Dial(harness.InitialEvents[1:])
	if state, _ := initial(s); len(state) > 0 {
		e.Errorf("got %v, want nothing", state)
	}
	e.Put("a")
	s.Want("ADDED a")
	selective := e.Dial(harness.LabelSelector("nobody") + harness.InitialEvents)
	if state, at := initial(selective); len(state) > 0 || at < e.Newest() {
		e.Errorf("got %v at %d of a selection without objects, want nothing at %d", state, at, e.Newest())
	}
}

// initialWritesDuring opens watches while somebody writes; each must bring the state at its last event.
func initialWritesDuring(e *harness.Env) {
	// So many writes race with the opening of a session, and as many as it reads come behind its initial events: it need not wait for luck.
	const opened, before, read = 40, 30, 20
	for i := range 20 {
		e.Put(fmt.Sprintf("x%02d", i))
	}
	type session struct {
		initial map[string]listwatch.Version
		at      listwatch.Version
		events  []listwatch.Event
	}
	var sessions []session
	writes := make(chan struct{}, opened*(before+read))
	var wg sync.WaitGroup
	wg.Go(func() {
		i := 0
		for range writes {
			if err := churn(e, i); err != nil {
				e.Error(err)
			}
			i++
		}
	})
	stop := sync.OnceFunc(func() { close(writes); wg.Wait() })
	defer stop()
	for range opened {
		harness.SendN(writes, before)
		s := e.Dial(harness.InitialEvents[1:])
		var one session
		one.initial, one.at = initial(s)
		harness.SendN(writes, read)
		for range read {
			one.events = append(one.events, s.Next())
		}
		s.Close()
		sessions = append(sessions, one)
	}
	stop()
	for _, s := range sessions {
		if diff := cmp.Diff(e.StateAt(s.at), s.initial); diff != "" {
			e.Fatalf("the initial events are not the state at %d (-want +got):\n%s", s.at, diff)
		}
		state, last := s.initial, s.at
		for _, ev := range s.events {
			if ev.Type == listwatch.Bookmark {
				continue
			}
			name := ev.Object.Key.Name
			if ev.Version <= last || (state[name] == 0) != (ev.Type == listwatch.Added) {
				e.Fatalf("got %s at %d after %d, where its version was %d", harness.Line(ev), ev.Version, last, state[name])
			}
			if last, state[name] = ev.Version, ev.Version; ev.Type == listwatch.Deleted {
				delete(state, name)
			}
		}
		if diff := cmp.Diff(e.StateAt(last), state); diff != "" {
			e.Fatalf("initial events and changes don't make the state at %d (-want +got):\n%s", last, diff)
		}
	}
}

// churn does the write of number i: it creates, changes and deletes twenty objects.
func churn(e *harness.Env, i int) error {
	name := fmt.Sprintf("x%02d", i*7%20)
	if i%3 == 0 {
		if _, err := e.TryDelete(name); err == nil {
			return nil
		}
	}
	_, err := e.TryPut(name)
	return err
}

func initialCutShort(e *harness.Env) {
	initial := func(events ...listwatch.Event) []listwatch.Event {
		for i := range events {
			events[i].Initial = true
		}
		return events
	}
	var mu sync.Mutex
	var asked []string
	watch := func(step http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked = append(asked, r.URL.Query().Get("resourceVersion")+" "+r.URL.Query().Get("sendInitialEvents"))
			mu.Unlock()
			step(w, r)
		}
	}
	whole := append(initial(harness.AddedEvent("a", "7"), harness.AddedEvent("b", "5"), harness.AddedEvent("c", "6")), harness.InitialEventsEnd(9), harness.AddedEvent("d", "10"))
	cut := make(chan struct{})
	_, at := e.ServeInTurn(watch(e.SendThenHold(cut, initial(harness.AddedEvent("a", "7"), harness.AddedEvent("z", "2"))...)), watch(e.SendThenEnd(whole...)), harness.RecordVersion(make(chan string, 1)))
	ctx, cancel := context.WithTimeout(e.Context(), e.Patience())
	defer cancel()
	w, err := e.Remote(at).Watch(ctx, listwatch.Query{Bookmarks: true})
	if err != nil {
		e.Fatal(err)
	}
	defer func() { w.Close() }()
	for range 2 {
		if _, err := e.NextOf(w); err != nil {
			e.Fatal(err)
		}
	}
	close(cut)
	state := map[string]bool{}
	for {
		got, err := e.NextOf(w)
		if err != nil {
			// A client may tell that the state must be had again, as long as it does not go on from a part of it.
			again, err := e.Remote(at).Watch(ctx, listwatch.Query{Bookmarks: true})
			if err != nil {
				e.Fatal(err)
			}
			w.Close()
			w = again
			clear(state)
			continue
		}
		if got.Type == listwatch.Synced {
			break
		}
		state[got.Object.Key.Name] = true
	}
	if !state["b"] || !state["c"] {
		e.Errorf("got %v as the state, want a, b and c", state)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, query := range asked {
		if query != " true" {
			e.Errorf("asked for resourceVersion and sendInitialEvents %q, want none and true: there was no version to resume from", query)
		}
	}
}

func initialFallback(e *harness.Env) {
	for _, code := range []int{http.StatusUnprocessableEntity, http.StatusBadRequest} {
		reason := map[int]string{422: "Invalid", 400: "BadRequest"}[code]
		var kinds []string
		var mu sync.Mutex
		at := e.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q, kind, step := r.URL.Query(), "list", e.SendThenEnd(harness.AddedEvent("b", "6"))
			switch {
			case q.Has("sendInitialEvents"):
				kind, step = "initial", harness.Respond(code, harness.StatusJSON(code, reason, nil), "Content-Type", "application/json")
			case q.Get("watch") == "":
				step = harness.Respond(200, `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[`+string(harness.AddedEvent("a", "5").Object.Data)+`]}`,
					"Content-Type", "application/json")
			default:
				kind = "watch " + q.Get("resourceVersion")
			}
			mu.Lock()
			kinds = append(kinds, kind)
			mu.Unlock()
			step(w, r)
		}))
		r := e.Remote(at)
		for range 2 {
			w, err := r.Watch(e.Context(), listwatch.Query{})
			if err != nil {
				e.Fatal(err)
			}
			for _, want := range []string{"a", "b"} {
				if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != want {
					e.Fatalf("refused by %d: got %v, %v; want %s", code, got, err, want)
				}
			}
			w.Close()
		}
		mu.Lock()
		got := strings.Join(slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == "watch 6" }), ", ")
		mu.Unlock()
		if want := "initial, list, watch 5, list, watch 5"; got != want {
			e.Errorf("refused by %d: asked for %s; want %s", code, got, want)
		}
	}
}
