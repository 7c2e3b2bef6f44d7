package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

func createUpdateDelete(e *harness.Env) {
	s := e.Dial("")
	want := []listwatch.Version{e.Put("a", "step", "one"), e.Put("a", "step", "two"), e.Delete("a")}
	events := s.Want("ADDED a", "MODIFIED a", "DELETED a")
	if got := harness.Versions(events); !slices.Equal(got, want) {
		e.Errorf("got versions %d, want the versions of the writes, %d", got, want)
	}
	for i, step := range []string{"one", "two", "two"} {
		if got := events[i].Object.Labels["step"]; got != step {
			e.Errorf("the object of event %d has the label step=%q, want %q: %s", i, got, step, events[i].Object.Data)
		}
	}
}

func firstEventIsNext(e *harness.Env) {
	var writes []listwatch.Version
	for range 8 {
		writes = append(writes, e.Put("a"))
	}
	for i, start := range writes[:len(writes)-1] {
		s := e.Dial(harness.From(start))
		if got := s.Next().Version; got != writes[i+1] {
			e.Errorf("watch from version %d: the first event has version %d, want %d", start, got, writes[i+1])
		}
		s.Close()
	}
	s := e.Dial(harness.From(writes[len(writes)-1]))
	next := e.Put("a")
	if got := s.Next().Version; got != next {
		e.Errorf("watch from the newest version, %d: the first event has version %d, want %d",
			writes[len(writes)-1], got, next)
	}
}

func deletedCarriesDeleteRV(e *harness.Env) {
	created := e.Put("a", "state", "last")
	s := e.Dial(harness.From(created))
	deleted := e.Delete("a")
	got := s.Want("DELETED a")[0]
	if got.Version != deleted || !bytes.Contains(got.Object.Data, []byte(`"resourceVersion":"`+deleted.String()+`"`)) {
		e.Errorf("got %s, want the version of the delete, %d", got.Object.Data, deleted)
	}
	if got.Object.Labels["state"] != "last" {
		e.Errorf("got %s, want the last state of the object", got.Object.Data)
	}
}

func recreate(e *harness.Env) {
	s := e.Dial("")
	e.Put("a")
	e.Delete("a")
	e.Put("a")
	events := s.Want("ADDED a", "DELETED a", "ADDED a")
	first, deleted, second := uid(e, events[0]), uid(e, events[1]), uid(e, events[2])
	if first != deleted || first == second || first == "" || second == "" {
		e.Errorf("got uid %q when created, %q when deleted and %q when created again: want the first two equal and "+
			"the third different", first, deleted, second)
	}
}

func uid(e *harness.Env, ev listwatch.Event) string {
	e.Helper()
	var object struct{ Metadata listwatch.Metadata }
	if err := json.Unmarshal(ev.Object.Data, &object); err != nil {
		e.Fatalf("%s: %v", ev.Object.Data, err)
	}
	return object.Metadata.UID
}

func rvMatchesWrite(e *harness.Env) {
	s := e.Dial("")
	for i := range 20 {
		name := string(rune('a' + i%3))
		want := e.Put(name)
		got := s.Next()
		if rv := `"resourceVersion":"` + want.String() + `"`; got.Version != want ||
			!bytes.Contains(got.Object.Data, []byte(rv)) {
			e.Fatalf("write %d returned version %d, but its event is %s", i, want, got.Object.Data)
		}
	}
}

func noopUpdate(e *harness.Env) {
	key := harness.KeyOf("a")
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace},
		"spec":     map[string]any{"phase": "same"},
	})
	if err != nil {
		e.Fatal(err)
	}
	put := func() listwatch.Version {
		e.Use(harness.Writes)
		v, err := e.Objects.Put(e.Context(), key, body)
		if err != nil {
			e.Fatal(err)
		}
		return v
	}
	first := put()
	s := e.Dial(harness.From(first))
	second := put()
	before := s.ReadUntil(e.PutSentinel())
	switch {
	case second == first && len(before) > 0:
		e.Errorf("the update kept version %d, but sent the event %s at %d", first,
			harness.EventLine(before[0]), before[0].Version)
	case second != first && (len(before) != 1 || before[0].Version != second):
		e.Errorf("the update returned version %d after %d: got events with versions %d, want exactly one, with the "+
			"new version", second, first, harness.Versions(before))
	}
}

func namespaceScope(e *harness.Env) {
	start := e.Put("before")
	paths := map[string][]string{
		e.ResourcePath(harness.DefaultNamespace): {"ADDED a", "MODIFIED a"},
		e.ResourcePath("other"):                  {"ADDED other/a", "DELETED other/a"},
		e.ResourcePath(""):                       {"ADDED a", "ADDED other/a", "MODIFIED a", "DELETED other/a"},
		e.URL.EscapedPath():                      {"ADDED a", "ADDED other/a", "MODIFIED a", "DELETED other/a"},
		e.ResourcePath("empty"):                  nil,
	}
	streams := map[string]*harness.Watch{}
	for path := range paths {
		streams[path] = dialAt(e, path, harness.From(start))
	}
	e.Put("a")
	e.Put("other/a")
	e.Put("a")
	e.Delete("other/a")
	for path, want := range paths {
		streams[path].Want(want...)
	}
	end := e.PutSentinel()
	e.Put("other/" + end)
	e.Put("empty/" + end)
	for path, s := range streams {
		if before := s.ReadUntil(end); len(before) > 0 {
			e.Errorf("%s: got the unexpected event %s", path, harness.EventLine(before[0]))
		}
	}
}

// dialAt opens a watch at another path of the same server.
func dialAt(e *harness.Env, path, query string) *harness.Watch {
	e.Helper()
	instance := *e.Instance
	u := *e.URL
	u.Path = path
	instance.URL = &u
	return e.WithRoute(&harness.Route{Instance: &instance, Client: e.Client}).Dial(query)
}

func unknownType(e *harness.Env) {
	future := harness.AddedEvent("b", "6")
	future.Type = listwatch.EventType(200) // encoded as UNKNOWN
	script, at := e.ServeSequence(e.SendThenEnd(harness.AddedEvent("a", "5"), future, harness.AddedEvent("c", "7")))
	w := e.Follow(e.Remote(at), 1)
	if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != "a" {
		e.Fatalf("got %s, want a", harness.Got(got, err))
	}
	for range 2 {
		if got, err := e.NextOf(w); err == nil || !strings.Contains(err.Error(), "UNKNOWN") ||
			!errors.Is(err, listwatch.Unsupported) {
			e.Errorf("got %s, want an error of code Unsupported that names the type", harness.Got(got, err))
		}
	}
	if n := len(script.RequestTimes()); n != 1 {
		e.Errorf("the client made %d requests, want 1: a retry would receive the same event", n)
	}
}

func measureLatency(e *harness.Env) {
	s := e.Dial("")
	var latencies []time.Duration
	for range 200 {
		e.Put("a")
		start := time.Now() // after the acknowledgement
		s.Next()
		latencies = append(latencies, time.Since(start))
	}
	slices.Sort(latencies)
	e.Logf("p50 %v, p99 %v", latencies[len(latencies)/2].Round(time.Microsecond),
		latencies[len(latencies)*99/100].Round(time.Microsecond))
}
