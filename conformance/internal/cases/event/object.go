package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
)

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

// textFramings returns the framings of e's transport that send the bytes of an object
// unchanged.
func textFramings(e *harness.Env) []framing.Framer {
	if e.Transport == "ws" {
		return []framing.Framer{framing.JSON{}}
	}
	return []framing.Framer{framing.JSON{}, framing.SSE{}, framing.JSONSeq{}, framing.LengthPrefixed{}}
}

// fragileValues returns values whose spelling may change if JSON is decoded and encoded again.
func fragileValues() map[string]any {
	return map[string]any{
		"number": json.Number("1e400"), "zero": json.Number("-0"), "tenth": json.Number("0.10"),
		"big":  json.Number("9007199254740993"),
		"text": "<&>\u2028 \U0001F600 é ", "list": []any{nil, true, map[string]any{}},
	}
}

// putFragileValues writes an object with fragileValues. If a server other than this module's
// rejects the number beyond the range of float64, as Kubernetes does, putFragileValues writes the
// object without that number.
func putFragileValues(e *harness.Env, name string) {
	e.Helper()
	values := fragileValues()
	_, err := e.TryPutSpec(name, map[string]string{"x": "y"}, values)
	if errors.Is(err, listwatch.Invalid) && !e.Supports(harness.InProcess) {
		delete(values, "number")
		_, err = e.TryPutSpec(name, map[string]string{"x": "y"}, values)
	}
	if err != nil {
		e.Fatal(err)
	}
}

func bytesEqualGet(e *harness.Env) {
	before := e.Put("before")
	putFragileValues(e, "a")
	a := e.GetRaw(e.ResourcePath(harness.DefaultNamespace) + "/a")
	a.WantStatus(http.StatusOK)
	want := strings.TrimSpace(string(a.ReadAll()))
	for _, f := range textFramings(e) {
		s, err := e.TryDialIn(f, harness.From(before))
		if !supports(e, f, err) {
			continue
		}
		if errors.Is(err, listwatch.Unsupported) && !e.Supports(harness.InProcess) {
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
	putFragileValues(e, "a")
	want := e.Dial(harness.From(before)).Want("ADDED a")[0].Object.Data
	for _, w := range e.OtherVariants() {
		if got := e.WithVariant(w).Dial(harness.From(before)).Want("ADDED a")[0].Object.Data; !bytes.Equal(got, want) {
			e.Errorf("%s and %s differ:\n%s", e.Variant.Name, w.Name, cmp.Diff(string(want), string(got)))
		}
	}
}

func noMutationLeak(e *harness.Env) {
	before := e.Put("before")
	modified, open := e.Dial(harness.From(before)), e.Dial(harness.From(before))
	e.Put("a")
	data := modified.Want("ADDED a")[0].Object.Data
	want := bytes.Clone(data)
	clear(data)
	for name, s := range map[string]*harness.Watch{"open": open, "new": e.Dial(harness.From(before))} {
		if got := s.Want("ADDED a")[0].Object.Data; !bytes.Equal(got, want) {
			e.Errorf("the %s watch got %s, want %s", name, got, want)
		}
	}
}
