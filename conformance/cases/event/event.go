package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
)

func createUpdateDelete(e *harness.Env) {
	s := e.Dial("")
	want := []listwatch.Version{e.Put("a", "step", "one"), e.Put("a", "step", "two"), e.Delete("a")}
	events := s.Want("ADDED a", "MODIFIED a", "DELETED a")
	if got := harness.Versions(events); !slices.Equal(got, want) {
		e.Errorf("got versions %d, want those of the writes, %d", got, want)
	}
	for i, step := range []string{"one", "two", "two"} {
		if got := events[i].Object.Labels["step"]; got != step {
			e.Errorf("the object of event %d is of step %q, want %q: %s", i, got, step, events[i].Object.Data)
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
			e.Errorf("from %d: got version %d first, want %d", start, got, writes[i+1])
		}
		s.Close()
	}
	s := e.Dial(harness.From(writes[len(writes)-1]))
	next := e.Put("a")
	if got := s.Next().Version; got != next {
		e.Errorf("from the newest version, %d: got %d first, want %d", writes[len(writes)-1], got, next)
	}
}

func deletedCarriesDeleteRV(e *harness.Env) {
	created := e.Put("a", "state", "last")
	s := e.Dial(harness.From(created))
	gone := e.Delete("a")
	got := s.Want("DELETED a")[0]
	if got.Version != gone || !bytes.Contains(got.Object.Data, []byte(`"resourceVersion":"`+gone.String()+`"`)) {
		e.Errorf("got %s, want the version of the delete, %d", got.Object.Data, gone)
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
	first, gone, second := uid(e, events[0]), uid(e, events[1]), uid(e, events[2])
	if first != gone || first == second || first == "" || second == "" {
		e.Errorf("got uids %q, %q when it was deleted, and %q: want the first two equal and the third another one", first, gone, second)
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
		if rv := `"resourceVersion":"` + want.String() + `"`; got.Version != want || !bytes.Contains(got.Object.Data, []byte(rv)) {
			e.Fatalf("write %d was answered version %d, and its event is %s", i, want, got.Object.Data)
		}
	}
}

func noopUpdate(e *harness.Env) {
	key := harness.KeyOf("a")
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace}, "spec": map[string]any{"phase": "same"}})
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
		e.Errorf("the update kept version %d, and yet there is an event %s at %d", first, harness.Line(before[0]), before[0].Version)
	case second != first && (len(before) != 1 || before[0].Version != second):
		e.Errorf("the update made version %d of %d: got events %d, want one of that version", second, first, harness.Versions(before))
	}
}

func namespaceScope(e *harness.Env) {
	start := e.Put("before")
	paths := map[string][]string{
		e.ResourcePath(harness.DefaultNamespace): {"ADDED a", "MODIFIED a"},
		e.ResourcePath("other"):                  {"ADDED other/a", "DELETED other/a"},
		e.ResourcePath(""):                       {"ADDED a", "ADDED other/a", "MODIFIED a", "DELETED other/a"},
		e.URL.EscapedPath():                      {"ADDED a", "ADDED other/a", "MODIFIED a", "DELETED other/a"},
		e.ResourcePath("nobody-there"):           nil,
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
	e.Put("nobody-there/" + end)
	for path, s := range streams {
		if before := s.ReadUntil(end); len(before) > 0 {
			e.Errorf("%s: got %s beside what belongs there", path, harness.Line(before[0]))
		}
	}
}

// dialAt is dial for another path of the same server.
func dialAt(e *harness.Env, path, query string) *harness.Watch {
	e.Helper()
	there := *e.Instance
	u := *e.URL
	u.Path = path
	there.URL = &u
	other := *e
	other.Route = &harness.Route{Instance: &there, Client: e.Client}
	return other.Dial(query)
}

func objectHasTypeMeta(e *harness.Env) {
	s := e.Dial("allowWatchBookmarks=true" + harness.InitialEvents)
	e.Put("type-meta")
	e.Put("type-meta")
	e.Delete("type-meta")
	for deleted := false; !deleted; {
		w, err := s.Receive()
		if err != nil {
			e.Fatal(err)
		}
		var object struct{ Kind, APIVersion string }
		if err := json.Unmarshal(w.Object, &object); err != nil || object.APIVersion == "" || object.Kind != e.Kind {
			e.Fatalf("got %s %s, want kind %s and an apiVersion: %v", w.Type, w.Object, e.Kind, err)
		}
		deleted = w.Type == "DELETED" && bytes.Contains(w.Object, []byte(`"type-meta"`))
	}
}

// textFramings are those that show an object's own bytes, on each transport.
func textFramings(e *harness.Env) []framing.Framer {
	if e.Transport == "ws" {
		return []framing.Framer{framing.JSON{}}
	}
	return []framing.Framer{framing.JSON{}, framing.SSE{}, framing.JSONSeq{}, framing.LengthPrefixed{}}
}

// oddValues are numbers and strings that a decoder and encoder would spell otherwise.
func oddValues() map[string]any {
	return map[string]any{
		"number": json.Number("1e400"), "zero": json.Number("-0"), "tenth": json.Number("0.10"), "big": json.Number("9007199254740993"),
		"text": "<&>\u2028 \U0001F600 é ", "list": []any{nil, true, map[string]any{}},
	}
}

// putOdd puts an object of oddValues, without the number that is beyond a float64 where the server does not store it.
func putOdd(e *harness.Env, name string) {
	e.Helper()
	values := oddValues()
	_, err := e.TryPutSpec(name, map[string]string{"x": "y"}, values)
	if errors.Is(err, listwatch.Invalid) && !e.Can(harness.InProcess) {
		delete(values, "number")
		_, err = e.TryPutSpec(name, map[string]string{"x": "y"}, values)
	}
	if err != nil {
		e.Fatal(err)
	}
}

func bytesEqualGet(e *harness.Env) {
	before := e.Put("before")
	putOdd(e, "a")
	a := e.GetRaw(e.ResourcePath(harness.DefaultNamespace) + "/a")
	a.WantStatus(http.StatusOK)
	want := strings.TrimSpace(string(a.ReadAll()))
	for _, f := range textFramings(e) {
		s, err := e.TryDialIn(f, harness.From(before))
		if errors.Is(err, listwatch.Unsupported) && !e.Can(harness.InProcess) {
			continue
		}
		if err != nil {
			e.Fatal(err)
		}
		if got := string(s.Want("ADDED a")[0].Object.Data); got != want {
			e.Errorf("%s: GET and the event differ (-get +event):\n%s", f.MediaType(), cmp.Diff(want, got))
		}
		s.Close()
	}
}

func bytesEqualAcrossTransports(e *harness.Env) {
	before := e.Put("before")
	putOdd(e, "a")
	want := e.Dial(harness.From(before)).Want("ADDED a")[0].Object.Data
	for _, w := range e.OtherVariants() {
		if got := e.WithVariant(w).Dial(harness.From(before)).Want("ADDED a")[0].Object.Data; !bytes.Equal(got, want) {
			e.Errorf("%s and %s differ:\n%s", e.Variant.Name, w.Name, cmp.Diff(string(want), string(got)))
		}
	}
}

func noMutationLeak(e *harness.Env) {
	before := e.Put("before")
	spoilt, first := e.Dial(harness.From(before)), e.Dial(harness.From(before))
	e.Put("a")
	data := spoilt.Want("ADDED a")[0].Object.Data
	want := bytes.Clone(data)
	clear(data)
	for name, s := range map[string]*harness.Watch{"open": first, "new": e.Dial(harness.From(before))} {
		if got := s.Want("ADDED a")[0].Object.Data; !bytes.Equal(got, want) {
			e.Errorf("the %s watch got %s, want %s", name, got, want)
		}
	}
}

func unknownType(e *harness.Env) {
	future := harness.AddedEvent("b", "6")
	future.Type = listwatch.EventType(200) // is spelt UNKNOWN
	script, at := e.ServeInTurn(e.SendThenEnd(harness.AddedEvent("a", "5"), future, harness.AddedEvent("c", "7")))
	w := e.Follow(e.Remote(at), 1)
	if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != "a" {
		e.Fatalf("got %v, %v; want a", got, err)
	}
	for range 2 {
		if got, err := e.NextOf(w); err == nil || !strings.Contains(err.Error(), "UNKNOWN") || !errors.Is(err, listwatch.Unsupported) {
			e.Errorf("got %v, %v; want an error of code Unsupported that names the type", got, err)
		}
	}
	if n := len(script.RequestTimes()); n != 1 {
		e.Errorf("the client asked %d times, want once: the answer would be the same", n)
	}
}

func eventLatency(e *harness.Env) {
	s := e.Dial("")
	var took []time.Duration
	for range 200 {
		e.Put("a")
		start := time.Now() // after the acknowledgement
		s.Next()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	e.Logf("p50 %v, p99 %v", took[len(took)/2].Round(time.Microsecond), took[len(took)*99/100].Round(time.Microsecond))
}
