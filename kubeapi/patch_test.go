package kubeapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/internal/options"
	"github.com/listwatch/listwatch/kubeapi/internal/patch"
	"github.com/listwatch/listwatch/kubeapi/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func applyPatch(t testing.TB, mediaType, doc, patch string) (string, error) {
	t.Helper()
	c := call{servedResource: new(servedResource)}
	c.Schema = objectMeta()
	o := options.Write{FieldValidation: metav1.FieldValidationIgnore}
	p, err := c.readPatch(httptest.NewRecorder(), o, mediaType, []byte(patch))
	if err != nil {
		return "", err
	}
	out, err := p([]byte(doc))
	return string(out), err
}

func TestMergePatchFollowsRFC(t *testing.T) {
	// The examples of rfc7386#appendix-A whose document and patch are objects.
	for _, c := range []struct{ doc, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		if got, err := applyPatch(t, mergePatchType, c.doc, c.patch); got != c.want || err != nil {
			t.Errorf("%s with %s: got %s, %v, want %s", c.doc, c.patch, got, err, c.want)
		}
	}
}

func TestJSONPatchReplacesTheWholeObject(t *testing.T) {
	const patch = `[{"op":"test","path":"","value":{"b":[1],"a":1}},{"op":"replace","path":"","value":{"c":{}}},{"op":"add","path":"/c/d","value":1}]`
	if got, err := applyPatch(t, jsonPatchType, `{"a":1,"b":[1]}`, patch); got != `{"c":{"d":1}}` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestPatchesKeepUnchangedBytes(t *testing.T) {
	const doc = `{"z":9007199254740993,"b":{"y":1e400,"x":"<&\u00e9é\u2028"},"a":[1.0,2.50]}`
	for mediaType, patch := range map[string]string{
		mergePatchType: `{"b": {"n": 18446744073709551617.0}}`,
		jsonPatchType:  `[{"op":"add", "path":"/b/n", "value": 18446744073709551617.0},{"op":"test","path":"/z","value":9007199254740993}]`,
	} {
		want := strings.Replace(doc, `2028"`, `2028","n":18446744073709551617.0`, 1)
		if got, err := applyPatch(t, mediaType, doc, patch); got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", mediaType, got, err, want)
		}
	}
	// The numbers differ, but are equal when they are converted to float64.
	if got, err := applyPatch(t, jsonPatchType, doc,
		`[{"op":"test","path":"/z","value":9007199254740992}]`); err == nil {
		t.Errorf("got %s, want the test to fail", got)
	}
}

func TestMalformedPatchesAreRejected(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)
	for _, c := range []struct {
		mediaType, patch string
		code             int
	}{
		{mergePatchType, `[]`, 400},
		{mergePatchType, `null`, 400},
		{mergePatchType, `{`, 400},
		{mergePatchType, deep, 400},
		{strategicPatchType, `[]`, 400},
		{strategicPatchType, `{`, 400},
		{strategicPatchType, deep, 400},
		{jsonPatchType, `{}`, 400},
		{jsonPatchType, `[1]`, 400},
		{jsonPatchType, `[{"op":"add"}]`, 422},
		{jsonPatchType, `[{"op":"frob","path":"/a"}]`, 422},
		{jsonPatchType, `[{"op":"copy","path":"/a"}]`, 422},
		{jsonPatchType, `[{"op":"move","path":"/a"}]`, 422},
		{jsonPatchType, `[{"op":"remove","path":1}]`, 422},
		{jsonPatchType, `[null]`, 422},
		{jsonPatchType, `[{"op":"add","path":"/a/l","value":[null]},{"op":"test","path":"/a/l","value":[1]}]`, 422},
		{jsonPatchType, `[{"op":"add","path":"/a/l","value":[1]},{"op":"test","path":"/a","value":{"l":[null]}}]`, 422},
		{jsonPatchType, `[{"op":"replace","path":"","value":[]}]`, 422},
		{jsonPatchType, `[{"op":"replace","path":""}]`, 422},
		{jsonPatchType, `[{"op":"remove","path":""}]`, 422},
		{jsonPatchType, `[{"op":"add","path":"","value":{}}]`, 422},
		{jsonPatchType, `[{"op":"move","path":"","from":"/a"}]`, 422},
		{jsonPatchType, `[{"op":"copy","path":"/b","from":""}]`, 422},
		{jsonPatchType, `[{"op":"test","path":"","value":{"a":null}}]`, 422},
		{jsonPatchType, `[{"op":"remove","path":"a"}]`, 422},
		{jsonPatchType, `[{"op":"remove","path":"` + strings.Repeat("/a", 300) + `"}]`, 422},
		{jsonPatchType, "[" + strings.Repeat(`{"op":"remove","path":"/a"},`, patch.MaxOperations) +
			`{"op":"remove","path":"/a"}]`, 400},
	} {
		_, err := applyPatch(t, c.mediaType, `{"a":{}}`, c.patch)
		testkit.WantStatus(t, fmt.Sprintf("%.60s", c.patch), err, c.code)
	}
}

func TestUnsupportedPatchErrorNamesAlternatives(t *testing.T) {
	const plain = "application/json-patch+json, application/merge-patch+json"
	for _, c := range []struct {
		mediaType string
		schema    *schema.Type
		want      string
	}{
		{"", nil, plain},
		{"a b", nil, plain},
		{
			"application/json", objectMeta(),
			plain + ", application/strategic-merge-patch+json, application/apply-patch+yaml",
		},
		{strategicPatchType, nil, "--type=merge or --type=json - accepted media types include: " + plain},
		{"application/apply-patch+xml", objectMeta(), "application/apply-patch+yaml, application/apply-patch+cbor"},
	} {
		_, err := patchMediaType(&http.Request{Header: http.Header{"Content-Type": {c.mediaType}}}, c.schema)
		if e := testkit.WantStatus(t, c.mediaType, err, 415); !strings.Contains(e.Message, c.want) {
			t.Errorf("%q: got %q, want %q", c.mediaType, e.Message, c.want)
		}
	}
}

// A resource without a schema, in a group of its own, is a custom resource in a cluster.
func TestPatchOfTheTypeNamesThePatchedType(t *testing.T) {
	const mergePatch = "application/merge-patch+json"
	a := startServer(t, nil)
	a.want(t, 201, "POST", gadgets, object("x"))
	a.want(t, 201, "POST", pods, object("x"))
	for _, tt := range []struct{ path, body, group, kind string }{
		{gadgets, `{"apiVersion":"v9"}`, "", "Gadget"},
		{gadgets, `{"apiVersion":"example.com/v9"}`, "example.com", "Gadget"},
		{gadgets, `{"kind":"Other"}`, "demo.example.com", "Other"},
		{pods, `{"apiVersion":"example.com/v9"}`, "", "Pod"},
	} {
		s := a.wantError(t, 422, "Invalid", "PATCH", tt.path+"/x", tt.body, "Content-Type", mergePatch)
		if s.Details == nil || s.Details.Group != tt.group || s.Details.Kind != tt.kind {
			t.Errorf("%s %s: got the details %+v, want the kind %s of the group %q", tt.path, tt.body, s.Details,
				tt.kind, tt.group)
		}
	}
}

func TestInapplicableJSONPatchIsInvalid(t *testing.T) {
	for _, patch := range []string{
		`[{"op":"remove","path":"/b"}]`, `[{"op":"replace","path":"/l/1","value":1}]`,
		`[{"op":"replace","path":"/l/-","value":1}]`,
		`[{"op":"replace","path":"/b/c","value":1}]`, `[{"op":"add","path":"/l/9","value":1}]`,
		`[{"op":"add","path":"/l/-1","value":1}]`, `[{"op":"test","path":"/a","value":2}]`,
		`[{"op":"copy","from":"/b","path":"/c"}]`,
		`[{"op":"add","path":"/a/b/c","value":1}]`,
	} {
		got, err := applyPatch(t, jsonPatchType, `{"a":1,"l":[1]}`, patch)
		if e := testkit.WantStatus(t, patch, err, 422); e.Code != listwatch.Invalid {
			t.Errorf("%s: got %s, %v, want code Invalid", patch, got, err)
		}
	}
}

// RFC 6902 refuses such a patch, but users of Kubernetes rely on it.
func TestJSONPatchIsAsLenientAsInKubernetes(t *testing.T) {
	got, err := applyPatch(t, jsonPatchType, `{"a":1,"l":[1]}`,
		`[{"op":"replace","path":"/b","value":2},{"op":"replace","path":"/l/0","value":3},{"op":"add","path":"/c"}]`)
	if want := `{"a":1,"l":[3],"b":2,"c":null}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestJSONPatchWorkIsLimited(t *testing.T) {
	const insert = `{"op":"add","path":"/l/0","value":1}`
	patch := "[" + strings.Repeat(insert+",", 999) + insert + "]"
	if _, err := applyPatch(t, jsonPatchType, `{"l":[`+strings.Repeat("1,", 1000)+`1]}`, patch); err != nil {
		t.Errorf("small object: %v", err)
	}
	// Without the limit, this patch of 13 KB moved all elements of the list 361 times, which took
	// 1.2 s.
	_, err := applyPatch(t, jsonPatchType, `{"l":[`+strings.Repeat("1,", 60_000)+`1]}`,
		"["+strings.Repeat(insert+",", 360)+insert+"]")
	if !errors.Is(err, listwatch.Invalid) {
		t.Errorf("large list: got %v, want Invalid", err)
	}
	if _, err = applyPatch(t, jsonPatchType, `{"l":["a","b"],"x":[`+strings.Repeat(`"a value of 25 bytes",`, 30_000)+
		`0]}`, "["+strings.Repeat(insert+",", 99)+insert+"]"); err != nil {
		t.Errorf("large object of long values: %v", err)
	}
}

// referenceMerge implements the pseudocode of RFC 7386.
func referenceMerge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	m, ok := target.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(m, name)
		} else {
			m[name] = referenceMerge(m[name], value)
		}
	}
	return m
}

func FuzzMergePatch(f *testing.F) {
	f.Add(`{"a":{"b":[1,{"c":null}]},"d":"\u0061"}`, `{"a":{"b":null,"x":{"y":null,"z":1}},"d":{}}`)
	f.Fuzz(func(t *testing.T, doc, patch string) {
		compact, err := rawjson.Compact([]byte(doc))
		if err != nil || compact[0] != '{' {
			return
		}
		got, err := applyPatch(t, mergePatchType, string(compact), patch)
		if err != nil {
			return
		}
		var target, change, have any
		if json.Unmarshal(compact, &target) != nil || json.Unmarshal([]byte(patch), &change) != nil {
			return // for example, encoding/json rejects a number beyond float64
		}
		if err := json.Unmarshal([]byte(got), &have); err != nil {
			t.Fatalf("%s with %s: got %s: %v", doc, patch, got, err)
		}
		if want := referenceMerge(target, change); !reflect.DeepEqual(have, want) {
			t.Errorf("%s with %s: got %s, want %v", doc, patch, got, want)
		}
	})
}

func FuzzJSONPatch(f *testing.F) {
	f.Add(`{"a":{"b":[1,2]}}`,
		`[{"op":"move","from":"/a/b/0","path":"/c"},{"op":"copy","from":"/a","path":"/a/b/-"},{"op":"test","path":"/c","value":1}]`)
	f.Add(`{"a":[null]}`, `[{"op":"test","path":"/a","value":[null]},{"op":"test","path":"","value":{"a":[1]}}]`)
	f.Add(`{"a":null}`,
		`[{"op":"replace","path":"/a","value":null},{"op":"remove","path":"/a"},{"op":"add","path":"/~01","value":[]}]`)
	f.Fuzz(func(t *testing.T, doc, patch string) {
		compact, err := rawjson.Compact([]byte(doc))
		if err != nil || compact[0] != '{' {
			return
		}
		got, err := applyPatch(t, jsonPatchType, string(compact), patch)
		if err == nil && (!json.Valid([]byte(got)) || !bytes.HasPrefix([]byte(got), []byte("{"))) {
			t.Errorf("%s with %s: got %s", doc, patch, got)
		}
	})
}

func TestMalformedJSONPatchErrorsAreClear(t *testing.T) {
	for patch, want := range map[string]string{
		`{}`: "a JSON patch must be a list of operations", `7`: "a JSON patch must be a list of operations",
		`[{"op":"test","path":"/a","value":1},7]`: "operation 1 is not an object",
		`["x"]`: "operation 0 is not an object",
	} {
		_, err := applyPatch(t, jsonPatchType, `{"a":1}`, patch)
		if e := testkit.WantStatus(t, patch, err, 400); e.Message != "the patch is invalid: "+want {
			t.Errorf("%s: got %q, want %q", patch, e.Message, want)
		}
	}
}
