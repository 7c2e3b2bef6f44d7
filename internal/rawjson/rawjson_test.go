package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCompactRemovesOnlySpace(t *testing.T) {
	src := []byte(" { \"a\" : [ 1.50e+400 , \"<\\u00e9\\/ >\u2028\" ] ,\r\n\t\"\" : { } } ")
	got, err := Compact(src)
	if want := "{\"a\":[1.50e+400,\"<\\u00e9\\/ >\u2028\"],\"\":{}}"; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestCompactReportsThePosition(t *testing.T) {
	for src, want := range map[string]string{
		"":             "incomplete JSON",
		`{"a":1,}`:     "at byte 8",
		`{} {}`:        "at byte 4",
		"\"\xff\"":     "UTF-8",
		`{"a":nul}`:    "at byte 9",
		"\"a\nb\"":     "at byte 3",
		"\ufeff{}":     "at byte 1",
		"{\"a\":01}":   "at byte 7",
		"{'a':1}":      "at byte 2",
		"[1 2]":        "at byte 4",
		`"\x"`:         "at byte 2",
		"//c\n{}":      "at byte 1",
		"{\"a\" \"b\"": "at byte 6",
	} {
		if got, err := Compact([]byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %s, %v, want an error with %q", src, got, err, want)
		}
	}
}

func TestCompactLimitsNesting(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := Compact(nested(10_000)); err != nil {
		t.Errorf("10,000 levels: %v", err)
	}
	if _, err := Compact(nested(10_001)); err == nil {
		t.Error("10,001 levels: want an error")
	}
}

func TestMembersKeepTheirOrder(t *testing.T) {
	doc := []byte(`{"b":1,"a\n":{"c":"}"},"":[{"x":"\"]"}],"d":true,"b":null}`)
	var got []string
	err := Members(doc, func(name string, value Span) error {
		got = append(got, name+"="+string(value.Of(doc)))
		return nil
	})
	want := []string{"b=1", "a\n={\"c\":\"}\"}", `=[{"x":"\"]"}]`, "d=true", "b=null"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestIterationStopsAtTheFirstError(t *testing.T) {
	stop := fmt.Errorf("stop")
	n := 0
	err := Members([]byte(`{"a":1,"b":2}`), func(string, Span) error { n++; return stop })
	if err != stop || n != 1 {
		t.Errorf("members: got %v after %d calls, want stop after 1", err, n)
	}
	n = 0
	err = Elements([]byte(`[1,2]`), func(Span) error { n++; return stop })
	if err != stop || n != 1 {
		t.Errorf("elements: got %v after %d calls, want stop after 1", err, n)
	}
}

func TestElementsFindsAllElements(t *testing.T) {
	doc := []byte(`[1,"a,]",[],{"b":[2]},null]`)
	var got []string
	if err := Elements(doc,
		func(value Span) error { got = append(got, string(value.Of(doc))); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1", `"a,]"`, "[]", `{"b":[2]}`, "null"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrorsNameTheKindOfTheValue(t *testing.T) {
	for doc, want := range map[string]string{
		`[]`: "got an array", `"a"`: "got a string", `1`: "got a number", `-1`: "got a number", `true`: "got a boolean",
		`false`: "got a boolean", `null`: "got null", ``: "got nothing",
	} {
		if err := Members([]byte(doc), nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("members of %s: got %v, want %q", doc, err, want)
		}
	}
	if err := Elements([]byte(`{}`), nil); err == nil || !strings.HasSuffix(err.Error(), "got an object") {
		t.Errorf("elements of an object: got %v", err)
	}
}

func TestSplitKeepsTheKeysAsWritten(t *testing.T) {
	got, err := Split([]byte(`{"n\u0061me":"a","b":[1]}`))
	want := []Member{
		{Name: "name", Key: []byte(`"n\u0061me"`), Value: []byte(`"a"`)},
		{Name: "b", Key: []byte(`"b"`), Value: []byte(`[1]`)},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestSplitRejectsDuplicateNames(t *testing.T) {
	for _, doc := range []string{`{"a":1,"a":1}`, `{"a":1,"b":2,"\u0061":3}`} {
		if _, err := Split([]byte(doc)); err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%s: got %v, want an error that names a", doc, err)
		}
	}
}

func TestLookupFollowsAPath(t *testing.T) {
	doc := []byte(`{"a":{"b":{"c":"d"},"e":null},"a.b":1}`)
	node := NewNode(doc)
	for path, want := range map[string]string{
		"": string(doc), "a b c": `"d"`, "a b": `{"c":"d"}`, "a e": "null", "a.b": "1", "a x": "", "a b c d": "",
		"x": "", "a e f": "",
	} {
		if got := Lookup(doc, strings.Fields(path)...); string(got) != want {
			t.Errorf("%q: got %s, want %s", path, got, want)
		}
		if got := node.Lookup(strings.Fields(path)...); string(got) != want {
			t.Errorf("%q of a node: got %s, want %s", path, got, want)
		}
	}
}

func TestStringAndStringMapDecode(t *testing.T) {
	for raw, want := range map[string]string{
		`"a"`: "a", `""`: "", `"\u00e9\n\""`: "é\n\"", `null`: "",
		`"\ud83d\ude00"`: "😀",
	} {
		if got, err := String([]byte(raw)); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{"", "1", "{}", "true"} {
		if _, err := String([]byte(raw)); err == nil {
			t.Errorf("%q: want an error", raw)
		}
	}
	got, err := StringMap([]byte(`{"a":"b","c":null}`))
	if diff := cmp.Diff(map[string]string{"a": "b", "c": ""}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := StringMap([]byte("null")); got != nil || err != nil {
		t.Errorf("null: got %v, %v, want nil", got, err)
	}
	if _, err := StringMap([]byte(`{"a":{}}`)); err == nil || !strings.HasPrefix(err.Error(), "a: ") {
		t.Errorf("got %v, want an error that names a", err)
	}
}

func TestAppendStringEncodes(t *testing.T) {
	for s, want := range map[string]string{
		"":                         `""`,
		"plain é\u2028\x7f<&>":     "\"plain é\u2028\x7f<&>\"",
		"\"a\\b\"\n\r\t\x00\x1f c": `"\"a\\b\"\n\r\t\u0000\u001f c"`,
		"not \xc3 UTF-8":           `"not ` + "\uFFFD" + ` UTF-8"`,
	} {
		got := AppendString([]byte("x"), s)
		if string(got) != "x"+want {
			t.Errorf("%q: got %s, want x%s", s, got, want)
		}
		if decoded, err := String(got[1:]); err != nil || decoded != strings.ToValidUTF8(s, "\uFFFD") {
			t.Errorf("%q: decodes to %q, %v", s, decoded, err)
		}
	}
}

func TestAppendingToASpanCopies(t *testing.T) {
	doc := []byte(`{"a":1,"b":2}`)
	span, err := Find(doc, "a")
	if err != nil {
		t.Fatal(err)
	}
	_ = append(span.Of(doc), 'x')
	if string(doc) != `{"a":1,"b":2}` {
		t.Errorf("the document became %s", doc)
	}
	if !(Span{}).Empty() || span.Empty() {
		t.Errorf("Empty is %t for the zero Span, %t for %v", Span{}.Empty(), span.Empty(), span)
	}
	if got, want := span.Shift(2), (Span{span.Start + 2, span.End + 2}); got != want {
		t.Errorf("Shift: got %v, want %v", got, want)
	}
}

// rejoin builds a document from the results of Split and Elements.
func rejoin(dst, doc []byte) []byte {
	switch doc[0] {
	case '{':
		members, err := Split(doc)
		if err != nil {
			return append(dst, doc...) // Split refuses duplicate names
		}
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = rejoin(append(append(dst, m.Key...), ':'), m.Value)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		n := 0
		_ = Elements(doc, func(value Span) error {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = rejoin(dst, value.Of(doc))
			return nil
		})
		return append(dst, ']')
	}
	return append(dst, doc...)
}

// Property: the results of Split and Elements contain all parts of the document.
func TestSplitAndElementsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.StringMatching(`\{("[a-c]":(1|"x"|\[\{\},2\]|\{"d":\[\]\}),){0,3}"z":null\}`).Draw(t, "doc")
		if got := string(rejoin(nil, []byte(doc))); got != doc {
			t.Fatalf("got %s, want %s", got, doc)
		}
	})
}

func FuzzSplitAndLookup(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,{"b":"c\\\""}],"":null}`, `[[],{},"",-0.1e+5]`, `{"a":1,"a":2}`, `"\ud800"`,
		` 1 `, `{"\\":"\""}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Compact(data)
		if err != nil {
			return
		}
		if got := rejoin(nil, doc); !bytes.Equal(got, doc) {
			t.Fatalf("got %s, want %s", got, doc)
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(doc, &want) != nil || want == nil {
			return
		}
		node := NewNode(doc)
		for name, value := range want {
			if got := Lookup(doc, name); !bytes.Equal(got, value) {
				t.Fatalf("%q: got %s, want %s", name, got, value)
			}
			if got := node.Lookup(name); !bytes.Equal(got, value) {
				t.Fatalf("%q of a node: got %s, want %s", name, got, value)
			}
		}
	})
}

// BenchmarkCompact compacts an object of 2 KiB with many short members, and one of 100 KiB that is
// one string.
func BenchmarkCompact(b *testing.B) {
	for _, bm := range []struct{ name, doc string }{
		{"members", `{"list":[` + strings.Repeat(`{"name":"a","number":12},`, 80) + `{}]}`},
		{"string", `{"text":"` + strings.Repeat("x", 100<<10) + `"}`},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(bm.doc)))
			for b.Loop() {
				if _, err := Compact([]byte(bm.doc)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSplit(b *testing.B) {
	doc := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"b"}},"spec":"` +
		strings.Repeat("x", 1024) + `"}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Split(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAppendWithout(t *testing.T) {
	for doc, want := range map[string]string{
		`{"a":{"b":1,"c":2},"d":3}`:   `{"a":{"c":2},"d":3}`,
		`{"a":{"c":2,"b":1}}`:         `{"a":{"c":2}}`,
		`{"a":{"b":[{"b":1}]},"b":1}`: `{"a":{},"b":1}`,
		`{"\u0061":{"b":1,"b":2}}`:    `{"\u0061":{}}`,
		`{"a":"b","b":{"a":1}}`:       `{"a":"b","b":{"a":1}}`,
		`{}`:                          `{}`,
	} {
		if got := string(AppendWithout([]byte("x"), []byte(doc), "a", "b")); got != "x"+want {
			t.Errorf("%s: got %s, want x%s", doc, got, want)
		}
	}
}
