package rawjson

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// pathsOf returns the paths of d as text.
func pathsOf(d *Differences) (texts []string) {
	for _, path := range d.paths {
		names := string(bytes.Join(path, []byte{'/'}))
		texts = append(texts, "/"+strings.ReplaceAll(names, `"`, ""))
	}
	return texts
}

func TestCompareNotesTheSmallestValues(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want []string
	}{
		{`{}`, `{}`, nil},
		{`{"a":1}`, `{"a":1}`, nil},
		{`{"a":1}`, `{"a":12}`, []string{"/a"}},
		{`{"a":12,"b":1}`, `{"a":1,"b":1}`, []string{"/a"}},
		{`{"a":"x","b":{"c":1,"d":[1,2]}}`, `{"a":"xyz","b":{"c":1,"d":[1,3]}}`, []string{"/a", "/b/d"}},
		{`{"a":{"b":1}}`, `{"a":{"b":1,"c":2}}`, []string{"/a"}},
		{`{"a":{"b":1,"c":2},"d":1}`, `{"a":{"b":1},"d":2}`, []string{"/a", "/d"}},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"c":2,"b":1}}`, []string{"/a"}},
		{`{"a":[{"t":1,"s":1},{"t":1,"s":1}]}`, `{"a":[{"t":2,"s":1},{"t":3,"s":22}]}`, []string{"/a/t", "/a/s"}},
		{`{"a":[{"t":1},{"t":2}],"b":1}`, `{"a":[{"t":1}],"b":1}`, []string{"/a"}},
		{`{"a":[[1],[2]]}`, `{"a":[[1],[3]]}`, []string{"/a"}},
		{`{"a":{"b":1}}`, `{"a":[1]}`, []string{"/a"}},
		{`{"a":null,"b":"}"}`, `{"a":{"x":1},"b":"{"}`, []string{"/a", "/b"}},
		{`{"a\"":1}`, `{"a\"":2}`, []string{`/a\`}},
		{`{"a":1}`, `{"b":1}`, []string{"/"}},
		{`{"a":1}`, `{"a":1,"b":2}`, []string{"/"}},
		{`{"a":{"x":1},"b":{"x":1}}`, `{"a":{"x":1},"b":{"x":2}}`, []string{"/b/x"}},
	} {
		for _, swap := range []bool{false, true} {
			a, b := test.a, test.b
			if swap {
				a, b = b, a
			}
			if got := pathsOf(Compare([]byte(a), []byte(b))); !slices.Equal(got, test.want) {
				t.Errorf("%s and %s: got %q, want %q", a, b, got, test.want)
			}
		}
	}
}

func TestCompareStopsAfterManyDifferences(t *testing.T) {
	many := func(value string, n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"a%d":%s`, i, value)
		}
		return []byte("{" + b.String()[1:] + "}")
	}
	if d := Compare(many("1", maxDifferences), many("2", maxDifferences)); d.unknown || len(d.paths) != maxDifferences {
		t.Errorf("got %d paths, unknown %t; want all", len(d.paths), d.unknown)
	}
	a, b := many("1", maxDifferences+1), many("2", maxDifferences+1)
	d := Compare(a, b)
	if !d.unknown {
		t.Error("the differences are known, want that there are too many")
	}
	for mask, want := range map[string]bool{"b": true, "a64": false} { // compared exactly
		if got := parseMask(t, mask).HidesDifferences(d, a, b); got != want {
			t.Errorf("the mask %s hides unknown differences: %t, want %t", mask, got, want)
		}
	}
	// Deep values count as a whole, and take linear time.
	deep := func(value string) []byte {
		return []byte(`{"a":` + strings.Repeat("[", 9000) + value + strings.Repeat("]", 9000) + `}`)
	}
	if got := pathsOf(Compare(deep("1"), deep("2"))); !slices.Equal(got, []string{"/a"}) {
		t.Errorf("a deep value: got %q, want /a", got)
	}
}
