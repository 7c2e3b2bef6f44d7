package strategicpatch

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/schema"
)

// types returns a small schema with all kinds of fields.
func types(t testing.TB) *schema.Type {
	t.Helper()
	object := &schema.Type{Name: "x.Object"}
	object.Fields = map[string]schema.Field{
		"atoms": {List: true},
		"free":  {},
		"maps":  {Type: &schema.Type{AdditionalProperties: &schema.Field{Type: object}}},
		"parts": {List: true, Type: object, Merge: true, MergeKey: "name"},
		"tags":  {List: true, Scalar: schema.String, Merge: true},
		"under": {Type: object, RetainKeys: true},
	}
	return object
}

type patchCase struct{ doc, patch, want string }

func checkAll(t *testing.T, cases []patchCase) {
	t.Helper()
	for _, c := range cases {
		got, err := Apply([]byte(c.doc), []byte(c.patch), types(t))
		if string(got) != c.want || err != nil {
			t.Errorf("%s with %s:\n got %s, %v\nwant %s", c.doc, c.patch, got, err, c.want)
		}
	}
}

func TestObjectsAreMergedAndNullRemoves(t *testing.T) {
	checkAll(t, []patchCase{
		{`{"a":1,"b":2}`, `{"b":3,"c":4}`, `{"a":1,"b":3,"c":4}`},
		{`{"a":1,"b":2}`, `{"a":null,"x":null}`, `{"b":2}`},
		{`{"under":{"a":1,"b":{"c":2}}}`, `{"under":{"b":{"d":3}}}`, `{"under":{"a":1,"b":{"c":2,"d":3}}}`},
		{
			`{"maps":{"m":{"parts":[{"name":"a"}]}}}`, `{"maps":{"m":{"parts":[{"name":"a","x":1}]}}}`,
			`{"maps":{"m":{"parts":[{"name":"a","x":1}]}}}`,
		},
		{`{"a":1}`, `{"a":{"b":null,"c":[{"d":null}]}}`, `{"a":{"c":[{}]}}`},
		{`{"a":{"b":1}}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":null}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`{}`, `{}`, `{}`},
	})
}

func TestPatchKeepsUnchangedBytes(t *testing.T) {
	const doc = `{"z":9007199254740993,"under":{"y":1e400,"x":"<&\u00e9é\u2028"},"parts":[{"n\u0061me":"\u0061","v":1.0},{"name":"b","v":2.50}]}`
	patch := `{"under":{"n":18446744073709551617.0},"parts":[{"name":"b","w":1e999}]}`
	want := strings.Replace(doc, `2028"`, `2028","n":18446744073709551617.0`, 1)
	want = strings.Replace(want, `2.50`, `2.50,"w":1e999`, 1)
	checkAll(t, []patchCase{{doc, patch, want}})
}

func TestListsAreMergedByKey(t *testing.T) {
	checkAll(t, []patchCase{
		{
			`{"parts":[{"name":"a","v":1},{"name":"b"}]}`, `{"parts":[{"name":"a","w":2}]}`,
			`{"parts":[{"name":"a","v":1,"w":2},{"name":"b"}]}`,
		},
		{`{"parts":[{"name":"a","v":1}]}`, `{"parts":[{"name":"\u0061","v":null}]}`, `{"parts":[{"name":"\u0061"}]}`},
		// As in Kubernetes, new elements precede the elements that are not in the patch.
		{`{"parts":[{"name":"a"}]}`, `{"parts":[{"name":"b","v":null}]}`, `{"parts":[{"name":"b"},{"name":"a"}]}`},
		{
			`{"parts":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"parts":[{"name":"c"},{"name":"a"}]}`,
			`{"parts":[{"name":"b"},{"name":"c"},{"name":"a"}]}`,
		},
		{
			`{"parts":[{"name":1},{"name":"1"}]}`, `{"parts":[{"name":1,"v":1},{"name":true}]}`,
			`{"parts":[{"name":1,"v":1},{"name":true},{"name":"1"}]}`,
		},
		{
			`{"parts":[{"name":"a","parts":[{"name":"x"}]}]}`, `{"parts":[{"name":"a","parts":[{"name":"x","v":1}]}]}`,
			`{"parts":[{"name":"a","parts":[{"name":"x","v":1}]}]}`,
		},
		{`{"parts":[]}`, `{"parts":[{"name":"a"},{"name":"a","v":1}]}`, `{"parts":[{"name":"a","v":1}]}`},
		{`{}`, `{"parts":[{"name":"a"},{"name":"a","v":1}]}`, `{"parts":[{"name":"a"},{"name":"a","v":1}]}`},
		// Elements without a key, and further elements with the same key, are kept.
		{
			`{"parts":[{"v":1},3,{"name":"a"},{"name":"a"}]}`, `{"parts":[{"name":"a","v":2}]}`,
			`{"parts":[{"v":1},3,{"name":"a","v":2},{"name":"a"}]}`,
		},
	})
}

func TestListsWithoutAKeyAreReplaced(t *testing.T) {
	checkAll(t, []patchCase{
		{`{"atoms":[1,{"a":1}]}`, `{"atoms":[{"b":null,"c":[null]}]}`, `{"atoms":[{"c":[null]}]}`},
		{`{"unknown":[1]}`, `{"unknown":[2,2]}`, `{"unknown":[2,2]}`},
		{`{"free":{"parts":[{"name":"a"}]}}`, `{"free":{"parts":[{"name":"b"}]}}`, `{"free":{"parts":[{"name":"b"}]}}`},
	})
}

func TestListsOfScalarsAreMergedAsSets(t *testing.T) {
	checkAll(t, []patchCase{
		{`{"tags":["a","b"]}`, `{"tags":["c","\u0061"]}`, `{"tags":["c","a","b"]}`},
		{`{"tags":["a","b","a"]}`, `{"tags":["b","b"]}`, `{"tags":["a","b"]}`},
		{`{"tags":["a","b","c"]}`, `{"$deleteFromPrimitiveList/tags":["b","x"]}`, `{"tags":["a","c"]}`},
		{
			`{"tags":["a","b"]}`,
			`{"$setElementOrder/tags":["c","a"],"$deleteFromPrimitiveList/tags":["b"],"tags":["c"]}`,
			`{"tags":["c","a"]}`,
		},
		{`{"tags":["a"]}`, `{"$deleteFromPrimitiveList/tags":["b"],"tags":["b"]}`, `{"tags":["a"]}`},
		{`{}`, `{"$deleteFromPrimitiveList/tags":["b"]}`, `{}`},
		{`{"atoms":[1,2]}`, `{"$deleteFromPrimitiveList/atoms":[1]}`, `{"atoms":[2]}`},
		{`{}`, `{"$setElementOrder/tags":["b"],"$deleteFromPrimitiveList/tags":["a"],"tags":["b"]}`, `{"tags":["b"]}`},
	})
}

func TestPatchDirectivesInObjects(t *testing.T) {
	checkAll(t, []patchCase{
		{`{"under":{"a":1}}`, `{"under":{"$patch":"replace","b":2,"c":null}}`, `{"under":{"b":2}}`},
		{`{}`, `{"under":{"$patch":"replace","b":2}}`, `{"under":{"b":2}}`},
		{`{"under":{"a":1}}`, `{"under":{"$patch":"delete","b":2}}`, `{"under":{}}`},
		{`{"a":1}`, `{"under":{"$patch":"delete"},"a":{"$patch":"delete"}}`, `{}`},
		{`{"under":{"a":1}}`, `{"under":{"$patch":"merge","b":2}}`, `{"under":{"a":1,"b":2}}`},
		{`{}`, `{"under":{"$patch":"merge","b":{"$patch":"merge"}}}`, `{"under":{"b":{}}}`},
	})
}

func TestPatchDirectivesInElements(t *testing.T) {
	const abc = `{"parts":[{"name":"a"},{"name":"b"},{"name":"c"}]}`
	checkAll(t, []patchCase{
		{abc, `{"parts":[{"name":"b","$patch":"delete"}]}`, `{"parts":[{"name":"a"},{"name":"c"}]}`},
		{abc, `{"parts":[{"$patch":"delete","name":"x"}]}`, abc},
		{
			abc, `{"parts":[{"name":"b","$patch":"delete"},{"name":"b","v":1}]}`,
			`{"parts":[{"name":"b","v":1},{"name":"a"},{"name":"c"}]}`,
		},
		{`{"parts":[{"name":"a"},{"name":"a"}]}`, `{"parts":[{"name":"a","$patch":"delete"}]}`, `{"parts":[]}`},
		{abc, `{"parts":[{"name":"a","v":1},{"$patch":"replace"}]}`, `{"parts":[{"name":"a","v":1}]}`},
		{abc, `{"parts":[{"$patch":"replace"}]}`, `{"parts":[]}`},
		{
			abc, `{"parts":[{"name":"b","$patch":"merge","v":1}]}`,
			`{"parts":[{"name":"a"},{"name":"b","v":1},{"name":"c"}]}`,
		},
		{
			`{}`, `{"parts":[{"name":"a","$patch":"delete"},{"$patch":"replace"},{"name":"b","$retainKeys":["name"]}]}`,
			`{"parts":[{"name":"b"}]}`,
		},
		{`{"tags":["a"]}`, `{"tags":["b",{"$patch":"replace"}]}`, `{"tags":["b"]}`},
	})
}

func TestRetainKeysRemovesOtherMembers(t *testing.T) {
	checkAll(t, []patchCase{
		{
			`{"under":{"a":1,"b":2,"c":3}}`, `{"under":{"$retainKeys":["a","d"],"d":4,"b":null}}`,
			`{"under":{"a":1,"d":4}}`,
		},
		{
			`{"parts":[{"name":"a","v":1}]}`, `{"parts":[{"name":"a","$retainKeys":["name"]}]}`,
			`{"parts":[{"name":"a"}]}`,
		},
		{`{}`, `{"under":{"$retainKeys":["a"],"a":1}}`, `{"under":{"a":1}}`},
		{
			`{"under":{"a":1,"tags":["x","y"]}}`,
			`{"under":{"$retainKeys":["tags"],"$deleteFromPrimitiveList/tags":["x"]}}`, `{"under":{"tags":["y"]}}`,
		},
	})
}

func TestSetElementOrder(t *testing.T) {
	list := func(names ...string) string {
		var elements []string
		for _, n := range names {
			elements = append(elements, fmt.Sprintf(`{"name":%q}`, n))
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
	for _, c := range []struct{ doc, patch, order, want string }{
		{"abc", "", "cba", "cba"},
		{"abc", "d", "abcd", "abcd"},
		{"abc", "d", "dcba", "dcba"},
		// x and y are not in the patch, so they keep their positions where possible.
		{"axb", "c", "abc", "axbc"},
		{"axby", "", "ba", "xbay"},
		{"xy", "ab", "ab", "abxy"},
	} {
		names := func(s string) string { return list(strings.Split(s, "")...) }
		patch := `{"$setElementOrder/parts":` + names(c.order) + `}`
		if c.patch != "" {
			patch = `{"$setElementOrder/parts":` + names(c.order) + `,"parts":` + names(c.patch) + `}`
		}
		checkAll(t, []patchCase{{`{"parts":` + names(c.doc) + `}`, patch, `{"parts":` + names(c.want) + `}`}})
	}
	checkAll(t, []patchCase{
		{`{}`, `{"$setElementOrder/parts":[{"name":"a"}]}`, `{}`},
		{`{"tags":["a","b"]}`, `{"$setElementOrder/tags":["b","a"]}`, `{"tags":["b","a"]}`},
		{`{"tags":["a"]}`, `{"$setElementOrder/tags":[]}`, `{"tags":["a"]}`},
	})
}

func TestInvalidPatchErrorNamesField(t *testing.T) {
	deep := strings.Repeat(`{"under":`, 200) + "1" + strings.Repeat("}", 200)
	deepList := `{"atoms":` + strings.Repeat(`[`, 200) + strings.Repeat("]", 200) + "}"
	const doc = `{"parts":[{"name":"a"}],"tags":["a"],"under":{"a":1},"atoms":[1]}`
	for _, c := range []struct {
		patch, field string
		status       int
	}{
		{`[]`, "", 400},
		{`{"$patch":"delete"}`, "", 400},
		{`{"$patch":"replace"}`, "", 400},
		{`{"under":{"$patch":"frob"}}`, "under.$patch", 400},
		{`{"under":{"$patch":1}}`, "under.$patch", 400},
		{`{"new":{"$patch":"frob"}}`, "new.$patch", 400},
		{`{"under":{"a":1,"a":2}}`, "under", 400},
		{`{"under":{"$retainKeys":"a"}}`, "under.$retainKeys", 400},
		{`{"under":{"$retainKeys":[1]}}`, "under.$retainKeys", 400},
		{`{"under":{"$retainKeys":["a"],"b":1}}`, "under.b", 400},
		{`{"parts":[{"v":1}]}`, "parts[0].name", 400},
		{`{"parts":[{"name":"b"},{"name":{}}]}`, "parts[1].name", 400},
		{`{"parts":[{"name":null}]}`, "parts[0].name", 400},
		{`{"parts":["a"]}`, "parts[0]", 400},
		{`{"parts":[{"$patch":"delete"}]}`, "parts[0].name", 400},
		{`{"parts":[{"$patch":"replace","name":"a"}]}`, "parts[0]", 400},
		{`{"parts":[{"$patch":"frob","name":"a"}]}`, "parts[0].$patch", 400},
		{`{"parts":[{"name":"a","under":{"parts":[{"$patch":"x"}]}}]}`, "parts[0].under.parts[0].$patch", 400},
		{`{"tags":[null]}`, "tags[0]", 400},
		{`{"tags":[{"name":"a"}]}`, "tags[0]", 400},
		{`{"$setElementOrder/parts":{}}`, "$setElementOrder/parts", 400},
		{`{"$setElementOrder/parts":["a"]}`, "$setElementOrder/parts[0].name", 400},
		{`{"$setElementOrder/parts":[{"name":"a"}],"parts":[{"name":"b"}]}`, "parts", 400},
		{`{"$setElementOrder/parts":[{"name":"a"},{"name":"b"}],"parts":[{"name":"b"},{"name":"a"}]}`, "parts", 400},
		{`{"$setElementOrder/other":["a"],"other":["b"]}`, "other", 400},
		{`{"$deleteFromPrimitiveList/tags":"a"}`, "$deleteFromPrimitiveList/tags", 400},
		{`{"$deleteFromPrimitiveList/tags":[{}]}`, "$deleteFromPrimitiveList/tags[0]", 400},
		{`{"$deleteFromPrimitiveList/parts":["a"]}`, "$deleteFromPrimitiveList/parts", 400},
		{`{"$deleteFromPrimitiveList/under":["a"]}`, "under", 422},
		{`{"under":{"$setElementOrder/a":["a"]}}`, "under.a", 422},
		{deep, "under", 400},
		{strings.Replace(deep, "under", "new", 1), "new", 400},
		{deepList, "atoms", 400},
		{`{"parts":[` + strings.Repeat(`{"name":"a","tags":["b"]},`, 100) + `{"name":"a"}]}`, "parts[17].tags", 400},
	} {
		got, err := Apply([]byte(doc), []byte(c.patch), types(t))
		e := testkit.WantStatus(t, fmt.Sprintf("%.80s", c.patch), err, c.status)
		if e.Code != listwatch.Invalid || !strings.Contains(e.Message, c.field) {
			t.Errorf("%.80s: got %s, %v, want code Invalid and %s", c.patch, got, err, c.field)
			continue
		}
		if c.field != "" && (e.Details == nil || e.Details.Causes[0].Field != c.field) {
			t.Errorf("%.80s: got details %+v, want a cause for field %s", c.patch, e.Details, c.field)
		}
	}
}

func TestInvalidStoredObjectIsNotPatchError(t *testing.T) {
	_, err := Apply([]byte(`{"under":{"a":1,"a":2}}`), []byte(`{"under":{"a":3}}`), nil)
	if e := testkit.WantStatus(t, "duplicate members", err, 422); !strings.Contains(e.Message, "under") {
		t.Errorf("got %q, want the member under", e.Message)
	}
}

func TestApplyModifiesNeitherArgument(t *testing.T) {
	doc := []byte(`{"parts":[{"name":"a","v":1},{"name":"b"}],"tags":["x","y"]}`)
	patch := []byte(
		`{"parts":[{"name":"b","$patch":"delete"},{"name":"a","v":2}],"$deleteFromPrimitiveList/tags":["x"]}`)
	before := string(doc) + string(patch)
	for range 2 { // the store applies a patch again after a conflict
		if got, err := Apply(doc, patch, types(t)); string(got) != `{"parts":[{"name":"a","v":2}],"tags":["y"]}` ||
			err != nil {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if after := string(doc) + string(patch); after != before {
		t.Errorf("the arguments were modified: %s", after)
	}
}

// A server's limits count a body as four times its size, so a long patch must not need much more
// memory. Growing slices and a path for each element once made it a hundred times the size.
func TestLongPatchesTakeLittleMemory(t *testing.T) {
	object, patch := types(t), []byte(`{"parts":[`+strings.Repeat(`{"name":"a"},`, 50_000)+`{"name":"b"}]}`)
	for _, doc := range []string{`{"parts":[{"name":"c"}]}`, `{}`} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Apply([]byte(doc), patch, object)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(50*len(patch)); err != nil || got > limit {
			t.Errorf("to %s, a patch of %d bytes allocated %d bytes, want at most %d; error %v", doc, len(patch), got,
				limit, err)
		}
	}
}

// FuzzApply checks that the result is a compact object, that it is not longer than the object and
// the patch together, and that it has no directives if the object has none.
func FuzzApply(f *testing.F) {
	for _, c := range []patchCase{
		{
			`{"parts":[{"name":"a","v":1},{"name":"b"}],"tags":["a"]}`,
			`{"parts":[{"name":"a","v":2},{"$patch":"delete","name":"b"}],"tags":["b"]}`, "",
		},
		{`{"under":{"a":1,"b":2}}`, `{"under":{"$retainKeys":["a"],"a":{"$patch":"replace","x":null}}}`, ""},
		{
			`{"parts":[{"name":"a"},{"name":"b"}]}`,
			`{"$setElementOrder/parts":[{"name":"b"},{"name":"a"}],"parts":[{"name":"b","maps":{"m":{}}}]}`, "",
		},
		{
			`{"tags":["a","b"],"atoms":[1]}`,
			`{"$deleteFromPrimitiveList/tags":["a"],"atoms":[{"$patch":"replace"},[null]]}`, "",
		},
		{`{"maps":{"m":{"parts":[]}}}`, `{"maps":{"m":{"parts":[{"name":1},{"name":1,"tags":[]}]},"n":null}}`, ""},
	} {
		f.Add(c.doc, c.patch)
	}
	f.Fuzz(func(t *testing.T, docText, patchText string) {
		doc, err := rawjson.Compact([]byte(docText))
		if err != nil || doc[0] != '{' {
			return
		}
		patch, err := rawjson.Compact([]byte(patchText))
		if err != nil {
			return
		}
		got, err := Apply(doc, patch, types(t))
		if err != nil {
			if e := listwatch.AsError(err); e.HTTPStatus() != 400 && e.HTTPStatus() != 422 {
				t.Fatalf("%s with %s: %v", doc, patch, err)
			}
			return
		}
		if len(got) > len(doc)+len(patch) || !json.Valid(got) || got[0] != '{' {
			t.Fatalf("%s with %s: got %s", doc, patch, got)
		}
		if !slices.Contains(directivesIn(doc), true) && slices.Contains(directivesIn(got), true) {
			t.Fatalf("%s with %s: got %s, which contains a directive", doc, patch, got)
		}
		if compact, err := rawjson.Compact(got); err != nil || string(compact) != string(got) {
			t.Fatalf("%s with %s: got %s, want the compact %s (%v)", doc, patch, got, compact, err)
		}
	})
}

// directivesIn reports for each member name in doc whether it is the name of a directive.
func directivesIn(doc []byte) (found []bool) {
	switch doc[0] {
	case '{':
		_ = rawjson.Members(doc, func(name string, s rawjson.Span) error {
			is := name == directiveKey || name == retainKeysKey || strings.HasPrefix(name, setOrderPrefix) ||
				strings.HasPrefix(name, deleteScalarsPrefix)
			found = append(append(found, is), directivesIn(s.Of(doc))...)
			return nil
		})
	case '[':
		_ = rawjson.Elements(doc, func(s rawjson.Span) error {
			found = append(found, directivesIn(s.Of(doc))...)
			return nil
		})
	}
	return found
}
