package store_test

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func TestGenerationFollowsTheRule(t *testing.T) {
	changes := []string{ // each differs from the one before it
		`{"metadata":{"name":"a"},"spec":{"x":1}}`,
		`{"metadata":{"name":"a"},"spec":{"x":2}}`,
		`{"metadata":{"name":"a"},"spec":{"x":2},"status":{"y":1}}`,
		`{"metadata":{"name":"a","annotations":{"b":"1"}},"spec":{"x":2},"status":{"y":1}}`,
		`{"metadata":{"name":"a","annotations":{"b":"1"},"labels":{"c":"1"}},"spec":{"x":2},"status":{"y":1}}`,
	}
	for want, rule := range map[string]store.GenerationRule{
		"1 2 2 2 2": {}, "- - - - -": {None: true}, "1 1 1 1 1": {Fixed: true}, "1 2 3 3 3": {Status: true},
		"- 1 1 1 1": {OnlyUpdates: true},
		"1 2 2 3 3": {Metadata: []string{"annotations"}},
		"1 2 3 4 5": {Status: true, Metadata: []string{"annotations", "labels"}},
	} {
		c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Generation: rule})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, data := range changes {
			var o *listwatch.Object
			if i == 0 {
				o, err = c.Create(t.Context(), []byte(data))
			} else {
				o, err = c.Replace(t.Context(), listwatch.Key{Name: "a"}, []byte(data))
			}
			if err != nil {
				t.Fatal(err)
			}
			_, rest, found := strings.Cut(string(o.Data), `"generation":`)
			if !found {
				rest = "-"
			}
			got = append(got, rest[:1])
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%+v: got the generations %s, want %s", rule, all, want)
		}
	}
}
