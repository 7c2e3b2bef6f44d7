package rawjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDropDuplicatesKeepsTheLast(t *testing.T) {
	for doc, want := range map[string]struct {
		unique  string
		dropped []string
	}{
		``:                                      {``, nil},
		`7`:                                     {`7`, nil},
		`{}`:                                    {`{}`, nil},
		`{"a":{"a":1},"b":[{"a":1},{"a":2}]}`:   {`{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, nil},
		`{"a":1,"a":2}`:                         {`{"a":2}`, []string{"a"}},
		`{"a":1,"b":2,"\u0061":[],"a":{"":""}}`: {`{"b":2,"a":{"":""}}`, []string{"a", "a"}},
		`{"":1,"":2}`:                           {`{"":2}`, []string{""}},
		`[[{"x":{"a":1,"b":"}","a":2},"y":0}]]`: {`[[{"x":{"b":"}","a":2},"y":0}]]`, []string{"[0][0].x.a"}},
		// A dropped member may itself contain duplicates.
		`{"a":{"b":1,"b":2},"c":0,"a":{"b":3,"b":4}}`: {`{"c":0,"a":{"b":4}}`, []string{"a.b", "a.b", "a"}},
	} {
		unique, dropped := DropDuplicates([]byte(doc))
		if diff := cmp.Diff(want.dropped, dropped); diff != "" || string(unique) != want.unique {
			t.Errorf("%s: got %s, want %s; dropped (-want +got):\n%s", doc, unique, want.unique, diff)
		}
	}
}

func TestDropDuplicatesOfManyMembers(t *testing.T) {
	var doc strings.Builder
	for i := range 3 * manyMembers {
		fmt.Fprintf(&doc, `"n%d":{"x":%d},`, i%(2*manyMembers), i)
	}
	unique, dropped := DropDuplicates([]byte("{" + doc.String() + `"z":0}`))
	var got map[string]any
	if err := json.Unmarshal(unique, &got); err != nil || len(got) != 2*manyMembers+1 || len(dropped) != manyMembers {
		t.Errorf("got %d members and %d dropped, %v, want %d and %d", len(got), len(dropped), err, 2*manyMembers+1, manyMembers)
	}
}

func TestDepthCountsNesting(t *testing.T) {
	for doc, want := range map[string]int{``: 0, `7`: 0, `"[[\"["`: 0, `{}`: 1, `[{"[":[]},{"a":{"b":[1]}},[]]`: 4} {
		if got := Depth([]byte(doc)); got != want {
			t.Errorf("%s: got %d, want %d", doc, got, want)
		}
	}
}

func FuzzDropDuplicates(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"b":[{"c":1,"\u0063":2}]},"a":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Compact(data)
		if err != nil {
			return
		}
		unique, dropped := DropDuplicates(doc)
		if again, more := DropDuplicates(unique); more != nil || string(again) != string(unique) || !json.Valid(unique) {
			t.Fatalf("%s: got %s, which still has the duplicates %q", doc, unique, more)
		}
		if (len(unique) < len(doc)) != (dropped != nil) {
			t.Fatalf("%s: got %s and %q", doc, unique, dropped)
		}
		var want, got any
		if json.Unmarshal(doc, &want) == nil && (json.Unmarshal(unique, &got) != nil || !reflect.DeepEqual(want, got)) {
			t.Fatalf("%s: got %s, which decodes to another value", doc, unique)
		}
	})
}

func BenchmarkDropDuplicates(b *testing.B) {
	doc := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"containers":[` +
		strings.Repeat(`{"name":"a","image":"b","env":[{"name":"A","value":"b"}]},`, 30) + `{}]}}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, dropped := DropDuplicates(doc); dropped != nil {
			b.Fatal(dropped)
		}
	}
}
