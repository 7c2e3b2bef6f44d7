package yamlbody

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

func TestToJSONConvertsYAML(t *testing.T) {
	for yaml, want := range map[string]string{
		"z: 1\na: [x, 'y', \"1\"]\n":       `{"z":1,"a":["x","y","1"]}`,
		"n: 9007199254740993":              `{"n":9007199254740993}`,
		"n: 123456789012345678901234567":   `{"n":123456789012345678901234567}`,
		"n: -1.50e400":                     `{"n":-1.50e400}`,
		"n: 0x10\nm: 1_000\no: 0o17":       `{"n":16,"m":1000,"o":15}`,
		"n: '1'\nm: !!str 2\no: !!float 3": `{"n":"1","m":"2","o":3}`,
		"b: true\nn: ~\ne:\ns: 'true'":     `{"b":true,"n":null,"e":null,"s":"true"}`,
		"y: yes\nt: 2020-01-01":            `{"y":"yes","t":"2020-01-01"}`,
		"1: a\ntrue: b":                    `{"1":"a","true":"b"}`,
		"a: &x {b: 1}\nc: *x":              `{"a":{"b":1},"c":{"b":1}}`,
		"s: |\n  a <b>\n  c\n":             `{"s":"a <b>\nc\n"}`,
		"a: 1\na: 2":                       `{"a":1,"a":2}`,
		"a: 1\n---\n":                      `{"a":1}`,
		"a: 1\n---\n# end\n---\n":          `{"a":1}`,
		"---\na: 1\n":                      `{"a":1}`,
		`{"a": [1, {"b": null}]}`:          `{"a": [1, {"b": null}]}`,
	} {
		if got, err := ToJSON(t.Context(), []byte(yaml), Limits{JSON: 1000}); string(got) != want || err != nil {
			t.Errorf("%q: got %s, %v, want %s", yaml, got, err, want)
		}
	}
}

func TestToJSONRejectsInvalidYAML(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
	for _, yaml := range []string{
		"", "# nothing", "a: 1\n---\nb: 2\n", "a: 1\n---\n''\n", "a: 1\n---\n: : :", "a: .inf", "a: !!binary aGVsbG8=",
		"? [a]\n: b", "a: &x {b: *x}", "a: &x {b: 1}\nc: {<<: *x}", ": : :", "a: *b",
		bomb, "a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), "\tx", "a: \x80",
	} {
		got, err := ToJSON(t.Context(), []byte(yaml), Limits{JSON: 1000})
		if !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%.40q: got %s, %v, want Invalid", yaml, got, err)
		}
	}
}

func TestLimitOfYAMLDoesNotApplyToJSON(t *testing.T) {
	l := Limits{JSON: 1000, YAML: 10}
	json := `{"a":"longer than ten bytes"}`
	if got, err := ToJSON(t.Context(), []byte(json), l); string(got) != json || err != nil {
		t.Errorf("got %s, %v, want the JSON unchanged", got, err)
	}
	if _, err := ToJSON(t.Context(), []byte("a: longer than ten bytes"), l); err != ErrTooLarge {
		t.Errorf("got %v, want %v", err, ErrTooLarge)
	}
}

func TestAtMostTwoDecodersRun(t *testing.T) {
	decoders <- struct{}{}
	decoders <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // if a decoder were free, select could still choose the ended context
		if got, err := ToJSON(ctx, []byte("a: 1"), Limits{}); err != context.Canceled {
			t.Fatalf("got %s, %v, want it to wait for a decoder until the context ends", got, err)
		}
	}
	if _, err := ToJSON(ctx, []byte(`{"a":1}`), Limits{}); err != nil {
		t.Errorf("got %v, want JSON to need no decoder", err)
	}
	<-decoders
	if got, err := ToJSON(t.Context(), []byte("a: 1"), Limits{}); string(got) != `{"a":1}` || err != nil {
		t.Errorf("got %s, %v, want JSON", got, err)
	}
	<-decoders
}

func FuzzToJSON(f *testing.F) {
	f.Add([]byte("a: &x [1, 0x1, .5, ~, 'q']\nb: *x\n"))
	f.Add([]byte("{\"a\": 1e400}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := ToJSON(t.Context(), data, Limits{JSON: 10000})
		if err == nil && !json.Valid(out) {
			t.Errorf("%q: got invalid JSON %q", data, out)
		}
	})
}
