package listwatch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProjectionReducesObjects(t *testing.T) {
	o,
		err := NewObject([]byte(
		`{"kind":"Node","metadata":{"name":"a","labels":{"zone":"x","os":"linux"}},"spec":{"a":1},"status":{"b":2}}`),
		7, map[string]string{"spec.a": "1"})
	if err != nil {
		t.Fatal(err)
	}
	const identity = `{"kind":"Node","metadata":{"name":"a",`
	for fields, want := range map[string]*Object{
		"":     o,
		"spec": {Data: []byte(identity + `"resourceVersion":"7"},"spec":{"a":1}}`)},
		"metadata,spec": {
			Labels: o.Labels,
			Data:   []byte(identity + `"labels":{"zone":"x","os":"linux"},"resourceVersion":"7"},"spec":{"a":1}}`),
		},
		"-status,-metadata.labels.os": {
			Labels: map[string]string{"zone": "x"},
			Data:   []byte(identity + `"labels":{"zone":"x"},"resourceVersion":"7"},"spec":{"a":1}}`),
		},
	} {
		p, err := ParseProjection(fields)
		if err != nil {
			t.Fatal(err)
		}
		want.Key, want.Version = o.Key, o.Version
		got := p.Reduce(o)
		if diff := cmp.Diff(want, got); diff != "" || p.Empty() != (fields == "") {
			t.Errorf("%q: got another object (-want +got):\n%s", fields, diff)
		}
		if appended := p.Append([]byte("x"), o.Data); string(appended) != "x"+string(want.Data) {
			t.Errorf("%q: got %s, want %s", fields, appended, want.Data)
		}
		if hides := p.Hides(o, o.At(8)); hides == p.Empty() {
			t.Errorf("%q: a change of the version: got hidden %v, want %v", fields, hides, !p.Empty())
		}
	}
}

func TestParseProjectionRefusesBadPaths(t *testing.T) {
	for text, want := range map[string]string{
		"spec,-metadata.name": `fields: path "-metadata.name": this member is always shown`,
		"spec,status[0]":      `path "status": want a dot, a comma or a name in brackets before "[0]"`,
	} {
		_, err := ParseProjection(text)
		if CodeOf(err) != Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error of code Invalid with %s", text, err, want)
		}
	}
}
