package rawjson

import "testing"

func TestWithTypeAddsMissingMembers(t *testing.T) {
	for doc, want := range map[string]string{
		`{"a":1}`:                              `{"kind":"K<","apiVersion":"v1","a":1}`,
		`{"a":1,"kind":"X"}`:                   `{"apiVersion":"v1","a":1,"kind":"X"}`,
		`{"apiVersion":"x","a":{}}`:            `{"kind":"K<","apiVersion":"x","a":{}}`,
		`{"apiVersion":"x","kind":null,"a":1}`: `{"apiVersion":"x","kind":null,"a":1}`,
	} {
		if got := string(WithType([]byte(doc), "v1", "K<")); got != want {
			t.Errorf("%s: got %s, want %s", doc, got, want)
		}
	}
}
