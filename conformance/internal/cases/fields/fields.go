package fields

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
)

// fields returns the parameter for paths. It skips the case if the server does not support it.
func fields(e *harness.Env, paths string) string {
	e.Helper()
	query := "fields=" + url.QueryEscape(paths) + "&"
	if e.ListRaw(query+"limit=1").WantStatus(http.StatusOK).Get("Listwatch-Fields") == "" {
		e.Skipf("the server does not support the parameter fields")
	}
	return query
}

// members returns the decoded members of o.
func members(e *harness.Env, o *listwatch.Object) map[string]any {
	e.Helper()
	var m map[string]any
	if err := json.Unmarshal(o.Data, &m); err != nil {
		e.Fatalf("%s: %v", o.Data, err)
	}
	return m
}

// shown returns the members of the only object of the collection, as a watch with paths shows them.
func shown(e *harness.Env, paths string) map[string]any {
	e.Helper()
	s := e.Dial(fields(e, paths) + harness.InitialEvents)
	defer s.Close()
	return members(e, s.Want("ADDED a")[0].Object)
}

// wantSpec checks the spec that a watch with paths shows. want is its JSON, or empty if the watch
// must not show a spec.
func wantSpec(e *harness.Env, paths, want string) {
	e.Helper()
	spec, ok := shown(e, paths)["spec"]
	got := ""
	if ok {
		text, _ := json.Marshal(spec) // decoded from JSON
		got = string(text)
	}
	if got != want {
		e.Errorf("fields=%s: got the spec %q, want %q", paths, got, want)
	}
}

// putSpec writes an object with the given spec. It skips the case if the server returns another
// spec. That happens if the resource has no spec: the suite then writes the values elsewhere, such
// as to the data of a ConfigMap.
func putSpec(e *harness.Env, spec string) {
	e.Helper()
	e.PutJSON("a", spec)
	s := e.Dial(harness.InitialEvents)
	defer s.Close()
	var want any
	if err := json.Unmarshal([]byte(spec), &want); err != nil {
		e.Fatal(err)
	}
	if got := members(e, s.Want("ADDED a")[0].Object)["spec"]; !cmp.Equal(got, want) {
		e.Skipf("the objects have no spec of any form")
	}
}

func identity(e *harness.Env) {
	e.Put("a", "color", "red")
	s := e.Dial(harness.InitialEvents)
	whole := members(e, s.Want("ADDED a")[0].Object)
	s.Close()
	want := map[string]any{"apiVersion": whole["apiVersion"], "kind": whole["kind"]}
	metadata := map[string]any{}
	for _, name := range []string{"name", "namespace", "uid", "resourceVersion"} {
		if v, ok := whole["metadata"].(map[string]any)[name]; ok {
			metadata[name] = v
		}
	}
	want["metadata"] = metadata
	if diff := cmp.Diff(want, shown(e, "status.absent")); diff != "" {
		e.Errorf("an object without a requested member (-want +got):\n%s", diff)
	}
	metadata["labels"] = map[string]any{"color": "red"}
	if diff := cmp.Diff(want, shown(e, "metadata.labels")); diff != "" {
		e.Errorf("an object with its labels (-want +got):\n%s", diff)
	}
}

func longestPath(e *harness.Env) {
	putSpec(e, `{"a":{"b":1,"c":{"d":2,"e":3}},"f":4,"x.y/z":5}`)
	for paths, want := range map[string]string{
		"spec.f":                       `{"f":4}`,
		"spec.a,-spec.a.c":             `{"a":{"b":1}}`,
		"spec.a,-spec.a.c,spec.a.c.e":  `{"a":{"b":1,"c":{"e":3}}}`,
		"-spec.a,-spec.f":              `{"x.y/z":5}`,
		"-spec.a,spec.a.b":             `{"a":{"b":1},"f":4,"x.y/z":5}`,
		"spec['x.y/z']":                `{"x.y/z":5}`,
		"spec.f.g":                     `{}`,
		"-spec":                        "",
		"metadata,-metadata.something": "",
	} {
		wantSpec(e, paths, want)
	}
}

func arrays(e *harness.Env) {
	putSpec(e, `{"list":[{"k":1,"v":2},{"v":3},[{"k":4,"v":5}],6]}`)
	wantSpec(e, "spec.list.k", `{"list":[{"k":1},{},[{"k":4}],null]}`)
	wantSpec(e, "-spec.list.v", `{"list":[{"k":1},{},[{"k":4}],6]}`)
}

// Put changes a counter in the spec. The projection hides it, so a Put with unchanged labels must
// cause no event.
func silent(e *harness.Env) {
	first := e.Put("a", "color", "red")
	s := e.Dial(fields(e, "metadata.labels") + harness.From(first))
	defer s.Close()
	e.Put("a", "color", "red")
	e.Put("b", "color", "red")
	e.Put("a", "color", "blue")
	hidden := e.Put("a", "color", "blue")
	gone := e.Delete("a")
	events := s.Want("ADDED b", "MODIFIED a", "DELETED a")
	if v := events[1].Version; v >= hidden {
		e.Errorf("got MODIFIED at version %d, which changed only hidden members", v)
	}
	deleted := members(e, events[2].Object)
	labels := deleted["metadata"].(map[string]any)["labels"]
	if events[2].Version != gone || deleted["spec"] != nil || !cmp.Equal(labels, map[string]any{"color": "blue"}) {
		e.Errorf("got DELETED at version %d with %s, want version %d and the last labels", events[2].Version, events[2].Object.Data, gone)
	}
}

// excluded is a projection without the members that Put changes, and without
// metadata.managedFields, whose times a server may set at each write.
const excluded = "-spec,-data,-metadata.managedFields"

func generation(e *harness.Env) {
	first := e.Put("a", "color", "red")
	s := e.Dial(fields(e, excluded) + harness.From(first))
	defer s.Close()
	for range 3 {
		e.Put("a", "color", "red")
	}
	e.Put("b", "color", "red")
	e.Put("a", "color", "blue")
	s.Want("ADDED b", "MODIFIED a")
}

func bookmarkMoves(e *harness.Env) {
	first := e.Put("a")
	s := e.Dial(fields(e, "metadata.labels") + harness.From(first) + "&" + harness.AllowBookmarks)
	defer s.Close()
	hidden := e.Put("a")
	for {
		before, b := s.ReadBookmark()
		if len(before) > 0 {
			e.Fatalf("got %q, which changed only hidden members", harness.EventLine(before[0]))
		}
		if b.Version >= hidden {
			return
		}
	}
}

func resume(e *harness.Env) {
	first := e.Put("a", "color", "red")
	query := fields(e, "metadata.labels")
	e.Put("a", "color", "red")
	e.Put("a", "color", "blue")
	e.Put("a", "color", "blue")
	e.Put("b")
	s := e.Dial(query + harness.From(first))
	events := s.Want("MODIFIED a", "ADDED b")
	s.Close()
	s = e.Dial(query + harness.From(events[0].Version))
	defer s.Close()
	s.Want("ADDED b")
}

func list(e *harness.Env) {
	putSpec(e, `{"a":1,"b":2}`)
	query := fields(e, "spec.a,spec.absent")
	r := e.ListRaw(query)
	if got := r.WantStatus(http.StatusOK).Get("Listwatch-Fields"); got != "spec.a,spec.absent" {
		e.Errorf("got Listwatch-Fields %q, want the canonical text spec.a,spec.absent", got)
	}
	var page struct{ Items []map[string]any }
	if err := json.Unmarshal(r.ReadAll(), &page); err != nil || len(page.Items) != 1 {
		e.Fatalf("got %v, %v, want one object", page, err)
	}
	if diff := cmp.Diff(shown(e, "spec.absent,spec.a"), page.Items[0]); diff != "" {
		e.Errorf("the object of the list (-watch +list):\n%s", diff)
	}
}

func wrongPaths(e *harness.Env) {
	fields(e, "spec")
	for _, paths := range []string{
		"spec..a", "spec,", "spec[0]", "spec.*", "spec,-spec", "-metadata.name", strings.Repeat("a,", 64) + "a",
	} {
		e.WatchRaw("fields="+url.QueryEscape(paths)).WantRefused(http.StatusBadRequest, "BadRequest")
	}
}
