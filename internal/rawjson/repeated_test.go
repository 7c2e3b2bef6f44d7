package rawjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOfNamesThatComeTwiceTheLastCounts(t *testing.T) {
	for doc, want := range map[string]struct {
		unique   string
		repeated []string
	}{
		``:                                      {``, nil},
		`7`:                                     {`7`, nil},
		`{}`:                                    {`{}`, nil},
		`{"a":{"a":1},"b":[{"a":1},{"a":2}]}`:   {`{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, nil},
		`{"a":1,"a":2}`:                         {`{"a":2}`, []string{"a"}},
		`{"a":1,"b":2,"\u0061":[],"a":{"":""}}`: {`{"b":2,"a":{"":""}}`, []string{"a", "a"}},
		`{"":1,"":2}`:                           {`{"":2}`, []string{""}},
		`[[{"x":{"a":1,"b":"}","a":2},"y":0}]]`: {`[[{"x":{"b":"}","a":2},"y":0}]]`, []string{"[0][0].x.a"}},
		// What goes has in it what would go.
		`{"a":{"b":1,"b":2},"c":0,"a":{"b":3,"b":4}}`: {`{"c":0,"a":{"b":4}}`, []string{"a.b", "a.b", "a"}},
	} {
		unique, repeated := DropDuplicates([]byte(doc))
		if diff := cmp.Diff(want.repeated, repeated); diff != "" || string(unique) != want.unique {
			t.Errorf("%s: got %s, want %s; names (-want +got):\n%s", doc, unique, want.unique, diff)
		}
	}
}

func TestNamesThatComeTwiceAreFoundAmongMany(t *testing.T) {
	var doc strings.Builder
	for i := range 3 * manyMembers {
		fmt.Fprintf(&doc, `"n%d":{"x":%d},`, i%(2*manyMembers), i)
	}
	unique, repeated := DropDuplicates([]byte("{" + doc.String() + `"z":0}`))
	var got map[string]any
	if err := json.Unmarshal(unique, &got); err != nil || len(got) != 2*manyMembers+1 || len(repeated) != manyMembers {
		t.Errorf("got %d members and %d repeated, %v, want %d and %d", len(got), len(repeated), err, 2*manyMembers+1, manyMembers)
	}
}

func TestDepthCountsWhatIsInOneAnother(t *testing.T) {
	for doc, want := range map[string]int{``: 0, `7`: 0, `"[[\"["`: 0, `{}`: 1, `[{"[":[]},{"a":{"b":[1]}},[]]`: 4} {
		if got := Depth([]byte(doc)); got != want {
			t.Errorf("%s: got %d, want %d", doc, got, want)
		}
	}
}

func FuzzDropRepeated(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"b":[{"c":1,"\u0063":2}]},"a":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Compact(data)
		if err != nil {
			return
		}
		unique, repeated := DropDuplicates(doc)
		if again, more := DropDuplicates(unique); more != nil || string(again) != string(unique) || !json.Valid(unique) {
			t.Fatalf("%s: got %s, in which %q come twice", doc, unique, more)
		}
		if (len(unique) < len(doc)) != (repeated != nil) {
			t.Fatalf("%s: got %s and %q", doc, unique, repeated)
		}
		var want, got any
		if json.Unmarshal(doc, &want) == nil && (json.Unmarshal(unique, &got) != nil || !reflect.DeepEqual(want, got)) {
			t.Fatalf("%s: got %s, which means something else", doc, unique)
		}
	})
}

func BenchmarkDropRepeated(b *testing.B) {
	doc := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"containers":[` +
		strings.Repeat(`{"name":"a","image":"b","env":[{"name":"A","value":"b"}]},`, 30) + `{}]}}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, repeated := DropDuplicates(doc); repeated != nil {
			b.Fatal(repeated)
		}
	}
}
