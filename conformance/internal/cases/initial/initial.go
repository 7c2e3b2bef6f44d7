package initial

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// readInitialEvents reads the initial events of s. It returns the versions of the objects
// by name, and the version of the bookmark that ends the initial events.
func readInitialEvents(s *harness.Watch) (state map[string]listwatch.Version, at listwatch.Version) {
	s.Helper()
	state = map[string]listwatch.Version{}
	for {
		e := s.Next()
		switch {
		case e.Type == listwatch.Synced:
			return state, e.Version
		case e.Type != listwatch.Added:
			s.Fatalf("got %s at version %d among the initial events", harness.EventLine(e), e.Version)
		}
		name := strings.TrimPrefix(harness.EventLine(e), "ADDED ")
		if _, twice := state[name]; twice {
			s.Fatalf("the initial events contain %s twice", name)
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
		e.Errorf("the bookmark that ends the initial events lacks the annotation: %s", end.Object.Data)
	}
	if got[1].Version == changed { // the initial events already include the write
		return
	}
	if next := s.Want("MODIFIED b")[0]; next.Version != changed {
		e.Errorf("got version %d after the initial events, want the version of the next write, %d", next.Version,
			changed)
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
		state, at := readInitialEvents(s)
		if diff := cmp.Diff(e.StateAt(at), state); diff != "" {
			e.Fatalf("the initial events differ from the state at version %d (-want +got):\n%s", at, diff)
		}
		s.Close()
	}
}

func initialFresh(e *harness.Env) {
	for range 30 {
		written := e.Put("a")
		s := e.Dial(harness.InitialEvents[1:])
		if state, at := readInitialEvents(s); at < written || state["a"] != written {
			e.Fatalf("a write was acknowledged at version %d, but the initial events show %v at version %d", written,
				state, at)
		}
		s.Close()
	}
}

func initialNotOlderThan(e *harness.Env) {
	old := e.Put("a")
	for range 5 {
		newest := e.Put("a")
		for _, version := range []listwatch.Version{old, newest} {
			s := e.Dial(harness.From(version) + harness.InitialEvents)
			if state, at := readInitialEvents(s); at < version || state["a"] < version {
				e.Fatalf("requested version %d or later, but the initial events show %v at version %d", version, state,
					at)
			}
			s.Close()
		}
	}
}

func initialOneEndMarker(e *harness.Env) {
	e.Put("a")
	s := e.Dial(harness.InitialEvents[1:])
	readInitialEvents(s)
	for range 4 {
		written := e.Put("a")
		for at := listwatch.Version(0); at < written; {
			_, b := s.ReadBookmark()
			if at = b.Version; b.Type == listwatch.Synced {
				e.Fatalf("got a second end marker, at version %d", at)
			}
		}
	}
}

func initialMatchRequired(e *harness.Env) {
	for _, query := range []string{
		"sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=5",
		"sendInitialEvents=false",
		"sendInitialEvents=true&resourceVersion=5&allowWatchBookmarks=true",
	} {
		s := e.WatchRaw(query).WantRefused(http.StatusUnprocessableEntity, "Invalid")
		if s.Details == nil || !slices.ContainsFunc(s.Details.Causes,
			func(c listwatch.Cause) bool { return c.Field == "resourceVersionMatch" }) {
			e.Errorf("%s: got details %s, want a cause that names resourceVersionMatch", query,
				harness.EncodeJSON(s.Details))
		}
	}
}

func initialMatchAlone(e *harness.Env) {
	for _, match := range []string{"NotOlderThan", "Exact"} {
		e.WatchRaw("resourceVersion=5&resourceVersionMatch="+match).WantRefused(http.StatusUnprocessableEntity,
			"Invalid")
	}
}

func initialForbiddenOnList(e *harness.Env) {
	for _, query := range []string{
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "sendInitialEvents=true", "sendInitialEvents=false",
	} {
		e.ListRaw(query).WantRefused(http.StatusUnprocessableEntity, "Invalid")
	}
}

func initialFalse(e *harness.Env) {
	e.Put("a")
	for _, version := range []string{"", "&resourceVersion=0"} {
		s := e.Dial("sendInitialEvents=false&resourceVersionMatch=NotOlderThan" + version)
		if before := s.ReadUntil(e.PutSentinel()); len(before) > 0 {
			e.Errorf("%q: got %s first, want only later writes", version, harness.EventLine(before[0]))
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
			e.Errorf("%q: got %s after the state, want the next write", query, harness.EventLine(before[0]))
		}
		e.Delete(end)
		s.Close()
	}
}

func initialEmpty(e *harness.Env) {
	s := e.Dial(harness.InitialEvents[1:])
	if state, at := readInitialEvents(s); len(state) > 0 || at == 0 {
		e.Errorf("got %v at version %d in an empty collection, want no objects, at version 1 or later", state, at)
	}
	e.Put("a")
	s.Want("ADDED a")
	selective := e.Dial(harness.LabelSelector("unused") + harness.InitialEvents)
	if state, at := readInitialEvents(selective); len(state) > 0 || at < e.Newest() {
		e.Errorf("got %v at version %d for a selector without matches, want no objects, at version %d or later", state,
			at, e.Newest())
	}
}

// initialWritesDuring opens watches while another goroutine writes. The initial events of each
// watch, updated by its changes, must equal the state at its last event.
func initialWritesDuring(e *harness.Env) {
	// Some writes race with the opening of each watch, and some follow its initial events,
	// so that the watch always has events to read.
	const opened, writesBefore, writesAfter = 20, 30, 20
	for i := range 20 {
		e.Put(fmt.Sprintf("x%02d", i))
	}
	type session struct {
		initial map[string]listwatch.Version
		at      listwatch.Version
		events  []listwatch.Event
	}
	var sessions []session
	writes := make(chan struct{}, opened*(writesBefore+writesAfter))
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
	for range harness.Repeat(10, opened) {
		harness.SendN(writes, writesBefore)
		s := e.Dial(harness.InitialEvents[1:])
		var current session
		current.initial, current.at = readInitialEvents(s)
		harness.SendN(writes, writesAfter)
		for range writesAfter {
			current.events = append(current.events, s.Next())
		}
		s.Close()
		sessions = append(sessions, current)
	}
	stop()
	for _, s := range sessions {
		if diff := cmp.Diff(e.StateAt(s.at), s.initial); diff != "" {
			e.Fatalf("the initial events differ from the state at version %d (-want +got):\n%s", s.at, diff)
		}
		state, last := s.initial, s.at
		for _, ev := range s.events {
			if ev.Type == listwatch.Bookmark {
				continue
			}
			name := ev.Object.Key.Name
			if ev.Version <= last || (state[name] == 0) != (ev.Type == listwatch.Added) {
				e.Fatalf("got %s at version %d after version %d, but the object had version %d (0: it did not exist)",
					harness.EventLine(ev), ev.Version, last, state[name])
			}
			if last, state[name] = ev.Version, ev.Version; ev.Type == listwatch.Deleted {
				delete(state, name)
			}
		}
		if diff := cmp.Diff(e.StateAt(last), state); diff != "" {
			e.Fatalf("initial events and changes differ from the state at version %d (-want +got):\n%s", last, diff)
		}
	}
}

// churn performs the i-th of a series of writes that create, update and delete twenty objects.
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
