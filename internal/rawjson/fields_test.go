package rawjson

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestFieldsReturnsTheValueAtEachPath(t *testing.T) {
	doc := []byte(`{"a":{"b":"x","c":{"d":1}},"a.b":"dot","e":true,"n":null,"l":["b"],"\u0066":"\u0067","":{"":"empty"},` +
		`"twice":{"x":1,"y":2},"twice":{"y":"last"},"scalar":{"x":1},"scalar":3}`)
	for path, want := range map[string]string{
		"a.b": "x", "a.c.d": "1", "a.c": "", "a": "", "a.x": "", "ab": "", "a.b.x": "", "e": "true", "n": "", "l": "",
		"l.b": "", "f": "g", ".": "empty", "": "", "twice.x": "", "twice.y": "last", "scalar.x": "", "scalar": "3",
	} {
		if got := Fields(doc, []string{"other", path, "a.c.d"}); !slices.Equal(got, []string{"", want, "1"}) {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
	for _, doc := range []string{"", "1", "[]", "{}"} {
		if got := Fields([]byte(doc), []string{"a"}); !slices.Equal(got, []string{""}) {
			t.Errorf("%q: got %q, want an absent value", doc, got)
		}
	}
}

func TestFieldsReadsAnyNumberOfPaths(t *testing.T) {
	var members, paths []string
	for i := range 200 {
		members, paths = append(members, fmt.Sprintf(`"m%d":%d`, i, i)), append(paths, fmt.Sprintf("o.m%d", i))
	}
	for i, got := range Fields([]byte(`{"o":{`+strings.Join(members, ",")+`}}`), paths) {
		if want := fmt.Sprint(i); got != want {
			t.Errorf("%s: got %s, want %s", paths[i], got, want)
		}
	}
}

func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"a":{"b":"x","a":{"a":1}},"a.b":"y","a":{"b":2},"\u0061":true}`), "a,a.b,a.a.a,.,")
	f.Fuzz(func(t *testing.T, data []byte, list string) {
		doc, err := Compact(data)
		if err != nil {
			return
		}
		paths := strings.Split(list, ",")
		for i, got := range Fields(doc, paths) {
			if want := scalar(Lookup(doc, strings.Split(paths[i], ".")...)); got != want {
				t.Fatalf("%q in %s: got %q, want %q", paths[i], doc, got, want)
			}
		}
	})
}

// BenchmarkFields reads the field selectors of pods in a pod of 6 KiB.
func BenchmarkFields(b *testing.B) {
	doc := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1","namespace":"shop","managedFields":[` +
		strings.Repeat(`{"manager":"kubelet","operation":"Update","fieldsV1":{"f:status":{"f:phase":{}}}},`, 24) +
		`{}]},"spec":{"nodeName":"node-1","containers":[{"name":"web","env":[` +
		strings.Repeat(`{"name":"VARIABLE","value":"the value of a variable"},`, 40) +
		`{}]}],"restartPolicy":"Always","serviceAccountName":"web","schedulerName":"default-scheduler"},` +
		`"status":{"phase":"Running","conditions":[` +
		strings.Repeat(`{"type":"Ready","status":"True","lastTransitionTime":"2026-05-01T11:54:30Z"},`, 16) +
		`{}],"podIP":"10.0.0.7"}}`)
	paths := []string{
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
		"status.phase", "status.podIP", "status.nominatedNodeName",
	}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		Fields(doc, paths)
	}
}
