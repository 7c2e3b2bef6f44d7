package listwatch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFieldRulesDefineValues(t *testing.T) {
	d := Description{
		Fields: []string{"spec.on", "spec.n", "source", "old", "plain"},
		FieldRules: map[string]FieldRule{
			"spec.on": {Absent: "false"}, "spec.n": {Absent: "0"}, "source": {Paths: []string{"from.name", "by"}},
			"old": {Paths: []string{"spec.on"}, Absent: "none"},
		},
	}
	for data, want := range map[string]map[string]string{
		`{}`:                                     {"spec.on": "false", "spec.n": "0", "old": "none"},
		`{"spec":{"on":true,"n":3},"plain":"x"}`: {"spec.on": "true", "spec.n": "3", "old": "true", "plain": "x"},
		`{"spec":{"on":null,"n":{}},"source":"x"}`: {"spec.on": "false", "spec.n": "0", "old": "none"},
		`{"from":{"name":""},"by":"b"}`:            {"spec.on": "false", "spec.n": "0", "old": "none", "source": "b"},
		`{"from":{"name":"a"},"by":"b"}`:           {"spec.on": "false", "spec.n": "0", "old": "none", "source": "a"},
	} {
		if diff := cmp.Diff(want, d.ReadFields([]byte(data))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", data, diff)
		}
	}
	if got := d.ReadFields([]byte(`{"spec":{"on":true,"n":1}}`)); got["old"] != "true" {
		t.Errorf("got %v", got)
	}
	if got := (Description{Fields: []string{"a"}}).ReadFields([]byte(`{}`)); got != nil {
		t.Errorf("got %v for an absent field, want nil", got)
	}
	if diff := cmp.Diff([]string{"from.name", "by", "plain"},
		append(d.FieldPaths("source"), d.FieldPaths("plain")...)); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}
