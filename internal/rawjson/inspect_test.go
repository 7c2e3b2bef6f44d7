package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInspectKeepsTheLastDuplicate(t *testing.T) {
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
		got := Inspect([]byte(doc))
		if diff := cmp.Diff(want.dropped, got.Dropped); diff != "" {
			t.Errorf("%s: dropped (-want +got):\n%s", doc, diff)
		}
		if string(got.Unique) != want.unique {
			t.Errorf("%s: got %s, want %s", doc, got.Unique, want.unique)
		}
	}
}

func TestInspectFindsDuplicatesOfManyMembers(t *testing.T) {
	var doc strings.Builder
	for i := range 3 * manyMembers {
		fmt.Fprintf(&doc, `"n%d":{"x":%d},`, i%(2*manyMembers), i)
	}
	r := Inspect([]byte("{" + doc.String() + `"z":0}`))
	var got map[string]any
	if err := json.Unmarshal(r.Unique, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2*manyMembers+1 {
		t.Errorf("got %d members, want %d", len(got), 2*manyMembers+1)
	}
	if len(r.Dropped) != manyMembers {
		t.Errorf("%d members were dropped, want %d", len(r.Dropped), manyMembers)
	}
}

func TestInspectCountsNesting(t *testing.T) {
	for doc, want := range map[string]int{``: 0, `7`: 0, `"[[\"["`: 0, `{}`: 1, `[{"[":[]},{"a":{"b":[1]}},[]]`: 4} {
		if got := Inspect([]byte(doc)).Depth; got != want {
			t.Errorf("%s: got %d, want %d", doc, got, want)
		}
	}
}

func TestInspectFindsNumbersOutOfRange(t *testing.T) {
	for doc, want := range map[string]string{
		``:                                       "",
		`{"a":[-1.5,1e308,"1e999",null,0]}`:      "",
		`{"1e999":[{"a":-1e999},1e998]}`:         "-1e999",
		`{"a":1e400,"a":1}`:                      "1e400", // even if the member is dropped
		strings.Repeat("9", 308):                 "",
		`[` + strings.Repeat("9", 310) + `,"x"]`: strings.Repeat("9", 310),
	} {
		if got := string(Inspect([]byte(doc)).OutOfRange); got != want {
			t.Errorf("%s: got %q, want %q", doc, got, want)
		}
	}
}

func FuzzInspect(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"b":[{"c":1,"\u0063":2}]},"a":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Compact(data)
		if err != nil {
			return
		}
		r := Inspect(doc)
		unique, dropped := r.Unique, r.Dropped
		if again := Inspect(unique); again.Dropped != nil || !bytes.Equal(again.Unique, unique) || !json.Valid(unique) {
			t.Fatalf("%s: got %s, which still has the duplicates %q", doc, unique, again.Dropped)
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

func BenchmarkInspect(b *testing.B) {
	doc := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"containers":[` +
		strings.Repeat(`{"name":"a","image":"b","env":[{"name":"A","value":"b"}]},`, 30) + `{}]}}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if r := Inspect(doc); r.Dropped != nil {
			b.Fatal(r.Dropped)
		}
	}
}
