package cases

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
	"github.com/listwatch/listwatch/framing"
)

func createUpdateDelete(e *env) {
	s := e.dial("")
	want := []listwatch.Version{e.put("a", "step", "one"), e.put("a", "step", "two"), e.delete("a")}
	events := s.want("ADDED a", "MODIFIED a", "DELETED a")
	if got := versions(events); !slices.Equal(got, want) {
		e.Errorf("got versions %d, want those of the writes, %d", got, want)
	}
	for i, step := range []string{"one", "two", "two"} {
		if got := events[i].Object.Labels["step"]; got != step {
			e.Errorf("the object of event %d is of step %q, want %q: %s", i, got, step, events[i].Object.Data)
		}
	}
}

func firstEventIsNext(e *env) {
	var writes []listwatch.Version
	for range 8 {
		writes = append(writes, e.put("a"))
	}
	for i, start := range writes[:len(writes)-1] {
		s := e.dial(from(start))
		if got := s.next().Version; got != writes[i+1] {
			e.Errorf("from %d: got version %d first, want %d", start, got, writes[i+1])
		}
		s.Close()
	}
	s := e.dial(from(writes[len(writes)-1]))
	next := e.put("a")
	if got := s.next().Version; got != next {
		e.Errorf("from the newest version, %d: got %d first, want %d", writes[len(writes)-1], got, next)
	}
}

func deletedCarriesDeleteRV(e *env) {
	created := e.put("a", "state", "last")
	s := e.dial(from(created))
	gone := e.delete("a")
	got := s.want("DELETED a")[0]
	if got.Version != gone || !bytes.Contains(got.Object.Data, []byte(`"resourceVersion":"`+gone.String()+`"`)) {
		e.Errorf("got %s, want the version of the delete, %d", got.Object.Data, gone)
	}
	if got.Object.Labels["state"] != "last" {
		e.Errorf("got %s, want the last state of the object", got.Object.Data)
	}
}

func recreate(e *env) {
	s := e.dial("")
	e.put("a")
	e.delete("a")
	e.put("a")
	events := s.want("ADDED a", "DELETED a", "ADDED a")
	first, gone, second := uid(e, events[0]), uid(e, events[1]), uid(e, events[2])
	if first != gone || first == second || first == "" || second == "" {
		e.Errorf("got uids %q, %q when it was deleted, and %q: want the first two equal and the third another one", first, gone, second)
	}
}

func uid(e *env, ev listwatch.Event) string {
	e.Helper()
	var object struct{ Metadata listwatch.Metadata }
	if err := json.Unmarshal(ev.Object.Data, &object); err != nil {
		e.Fatalf("%s: %v", ev.Object.Data, err)
	}
	return object.Metadata.UID
}

func rvMatchesWrite(e *env) {
	s := e.dial("")
	for i := range 20 {
		name := string(rune('a' + i%3))
		want := e.put(name)
		got := s.next()
		if rv := `"resourceVersion":"` + want.String() + `"`; got.Version != want || !bytes.Contains(got.Object.Data, []byte(rv)) {
			e.Fatalf("write %d was answered version %d, and its event is %s", i, want, got.Object.Data)
		}
	}
}

func noopUpdate(e *env) {
	key := keyOf("a")
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace}, "spec": map[string]any{"phase": "same"}})
	if err != nil {
		e.Fatal(err)
	}
	put := func() listwatch.Version {
		e.use(Writes)
		v, err := e.store.Put(e.Context(), key, body)
		if err != nil {
			e.Fatal(err)
		}
		return v
	}
	first := put()
	s := e.dial(from(first))
	second := put()
	before := s.until(e.sentinel())
	switch {
	case second == first && len(before) > 0:
		e.Errorf("the update kept version %d, and yet there is an event %s at %d", first, line(before[0]), before[0].Version)
	case second != first && (len(before) != 1 || before[0].Version != second):
		e.Errorf("the update made version %d of %d: got events %d, want one of that version", second, first, versions(before))
	}
}

func namespaceScope(e *env) {
	start := e.put("before")
	paths := map[string][]string{
		e.path(namespace):      {"ADDED a", "MODIFIED a"},
		e.path("other"):        {"ADDED other/a", "DELETED other/a"},
		e.path(""):             {"ADDED a", "ADDED other/a", "MODIFIED a", "DELETED other/a"},
		e.URL.EscapedPath():    {"ADDED a", "ADDED other/a", "MODIFIED a", "DELETED other/a"},
		e.path("nobody-there"): nil,
	}
	streams := map[string]*stream{}
	for path := range paths {
		streams[path] = e.dialAt(path, from(start))
	}
	e.put("a")
	e.put("other/a")
	e.put("a")
	e.delete("other/a")
	for path, want := range paths {
		streams[path].want(want...)
	}
	end := e.sentinel()
	e.put("other/" + end)
	e.put("nobody-there/" + end)
	for path, s := range streams {
		if before := s.until(end); len(before) > 0 {
			e.Errorf("%s: got %s beside what belongs there", path, line(before[0]))
		}
	}
}

// dialAt is dial for another path of the same server.
func (e *env) dialAt(path, query string) *stream {
	e.Helper()
	there := *e.Instance
	u := *e.URL
	u.Path = path
	there.URL = &u
	other := *e
	other.site = &site{&there, e.client}
	return other.dial(query)
}

func objectHasTypeMeta(e *env) {
	s := e.dial("allowWatchBookmarks=true" + streamingList)
	e.put("type-meta")
	e.put("type-meta")
	e.delete("type-meta")
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
func (e *env) textFramings() []framing.Framer {
	if e.on == "ws" {
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
func (e *env) putOdd(name string) {
	e.Helper()
	values := oddValues()
	_, err := e.tryPutSpec(name, map[string]string{"x": "y"}, values)
	if errors.Is(err, listwatch.Invalid) && !e.can(InProcess) {
		delete(values, "number")
		_, err = e.tryPutSpec(name, map[string]string{"x": "y"}, values)
	}
	if err != nil {
		e.Fatal(err)
	}
}

func bytesEqualGet(e *env) {
	before := e.put("before")
	e.putOdd("a")
	a := e.get(e.path(namespace) + "/a")
	a.wantStatus(http.StatusOK)
	want := strings.TrimSpace(string(a.all()))
	for _, f := range e.textFramings() {
		s, err := e.tryDialIn(f, from(before))
		if errors.Is(err, listwatch.Unsupported) && !e.can(InProcess) {
			continue
		}
		if err != nil {
			e.Fatal(err)
		}
		if got := string(s.want("ADDED a")[0].Object.Data); got != want {
			e.Errorf("%s: GET and the event differ (-get +event):\n%s", f.MediaType(), cmp.Diff(want, got))
		}
		s.Close()
	}
}

func bytesEqualAcrossTransports(e *env) {
	before := e.put("before")
	e.putOdd("a")
	want := e.dial(from(before)).want("ADDED a")[0].Object.Data
	for _, w := range e.others() {
		if got := e.over(w).dial(from(before)).want("ADDED a")[0].Object.Data; !bytes.Equal(got, want) {
			e.Errorf("%s and %s differ:\n%s", e.way.name, w.name, cmp.Diff(string(want), string(got)))
		}
	}
}

func noMutationLeak(e *env) {
	before := e.put("before")
	spoilt, first := e.dial(from(before)), e.dial(from(before))
	e.put("a")
	data := spoilt.want("ADDED a")[0].Object.Data
	want := bytes.Clone(data)
	clear(data)
	for name, s := range map[string]*stream{"open": first, "new": e.dial(from(before))} {
		if got := s.want("ADDED a")[0].Object.Data; !bytes.Equal(got, want) {
			e.Errorf("the %s watch got %s, want %s", name, got, want)
		}
	}
}

func unknownType(e *env) {
	future := added("b", "6")
	future.Type = listwatch.EventType(200) // is spelt UNKNOWN
	script, at := e.play(e.sends(added("a", "5"), future, added("c", "7")))
	w := e.follow(e.remote(at), 1)
	if got, err := e.nextOf(w); err != nil || got.Object.Key.Name != "a" {
		e.Fatalf("got %v, %v; want a", got, err)
	}
	for range 2 {
		if got, err := e.nextOf(w); err == nil || !strings.Contains(err.Error(), "UNKNOWN") || !errors.Is(err, listwatch.Unsupported) {
			e.Errorf("got %v, %v; want an error of code Unsupported that names the type", got, err)
		}
	}
	if n := len(script.times()); n != 1 {
		e.Errorf("the client asked %d times, want once: the answer would be the same", n)
	}
}

func eventLatency(e *env) {
	s := e.dial("")
	var took []time.Duration
	for range 200 {
		e.put("a")
		start := time.Now() // after the acknowledgement
		s.next()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	e.Logf("p50 %v, p99 %v", took[len(took)/2].Round(time.Microsecond), took[len(took)*99/100].Round(time.Microsecond))
}
