package kubeapi

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// duplicateMembers has duplicate members, some with escapes, in a list and at the top
// level.
const duplicateMembers = `{"metadata":{"name":"one","labels":{"a":"b"},"labels":{"c":"d"}},"spec":{"a":1,"\u0061":2,"b":[{"c":1,"c":2}]},"spec\"":1,"spec\"":2}`

func TestLastDuplicateMemberIsKeptWithWarning(t *testing.T) {
	a := startServer(t, nil)
	for _, query := range []string{"", "&fieldValidation=Warn"} {
		res := a.do(t, "POST", gadgets+"?dryRun=All"+query, duplicateMembers)
		want := `299 - "duplicate field \"metadata.labels\"",299 - "duplicate field \"spec.a\"",299 - "duplicate field \"spec.b[0].c\"",` +
			`299 - "duplicate field \"spec\\\"\""`
		if got := strings.Join(res.Header["Warning"], ","); res.StatusCode != 201 || got != want {
			t.Errorf("%q: got %d with warnings %s, want %s", query, res.StatusCode, got, want)
		}
	}
	res := a.do(t, "POST", gadgets+"?fieldValidation=Ignore", duplicateMembers)
	if res.StatusCode != 201 || res.Header["Warning"] != nil {
		t.Errorf("got %d with warnings %q, want no warnings", res.StatusCode, res.Header["Warning"])
	}
	got := a.want(t, 200, "GET", gadgets+"/one", "")
	if !strings.Contains(got, `"spec":{"\u0061":2,"b":[{"c":2}]},"spec\"":2}`) || strings.Contains(got, `"a":"b"`) {
		t.Errorf("got %s, want each member once", got)
	}
	a.want(t, 200, "PATCH", gadgets+"/one", `{"spec":{"a":3}}`, "Content-Type", mergePatchType)
}

func TestStrictValidationRejectsDuplicates(t *testing.T) {
	a := startServer(t, nil)
	const strict = "?fieldValidation=Strict"
	refused := func(method, path, body, field string, header ...string) {
		t.Helper()
		s := a.wantError(t, 400, "BadRequest", method, path+strict, body, header...)
		if want := `Pod in version "v1" cannot be handled as a Pod: strict decoding error: duplicate field "` + field +
			`"`; !strings.HasPrefix(s.Message, want) {
			t.Errorf("%s: got %q, want %q", body, s.Message, want)
		}
	}
	refused("POST", pods, duplicateMembers, "metadata.labels")
	refused("POST", pods, "metadata: {name: one}\nspec:\n  a: 1\n  a: 2\n", "spec.a", "Content-Type",
		"application/yaml")
	a.want(t, 201, "POST", pods+strict, object("one"))
	refused("PUT", pods+"/one", duplicateMembers, "metadata.labels")
	refused("PUT", pods+"/one/status", `{"status":{"a":1,"a":2}}`, "status.a")
	for _, c := range []struct{ mediaType, body, field string }{
		{mergePatchType, `{"spec":{"a":1,"a":2}}`, "spec.a"},
		{strategicPatchType, `{"spec":{"a":1,"a":2}}`, "spec.a"},
		{jsonPatchType, `[{"op":"add","path":"/spec","value":{"a":1,"a":2}}]`, "[0].value.a"},
	} { // the status is 422, as in kube-apiserver
		s := a.wantError(t, 422, "Invalid", "PATCH", pods+"/one"+strict, c.body, "Content-Type", c.mediaType)
		if want := `strict decoding error: duplicate field "` + c.field + `"`; !strings.HasSuffix(s.Message, want) {
			t.Errorf("%s: got %q, want %q", c.body, s.Message, want)
		}
	}
}

func TestPatchesDropDuplicateMembers(t *testing.T) {
	for mediaType, patch := range map[string]string{
		mergePatchType:     `{"spec":{"nodeName":"1","nodeName":"2"}}`,
		strategicPatchType: `{"spec":{"nodeName":"1","nodeName":"2"}}`,
		jsonPatchType:      `[{"op":"add","path":"/spec","value":{"nodeName":"1","nodeName":"2"}}]`,
	} {
		a := startServer(t, nil)
		a.want(t, 201, "POST", pods, object("one"))
		res := a.do(t, "PATCH", pods+"/one", patch, "Content-Type", mediaType)
		if res.StatusCode != 200 || len(res.Header["Warning"]) != 1 {
			t.Errorf("%s: got %d with warnings %q, want one", mediaType, res.StatusCode, res.Header["Warning"])
		}
		if got := a.want(t, 200, "GET", pods+"/one", ""); !strings.Contains(got, `"spec":{"nodeName":"2"}`) {
			t.Errorf("%s: got %s", mediaType, got)
		}
	}
}

func TestWarningsAreLimited(t *testing.T) {
	a := startServer(t, nil)
	member := `"` + strings.Repeat("\u00e9\\n", 3000) + `":1,`
	many := strings.Repeat(`{`+member+member+`"z":0},`, 30)
	res := a.do(t, "POST", gadgets, `{"metadata":{"name":"one"},"odd":[`+many+`0]}`)
	size := 0
	for _, w := range res.Header["Warning"] {
		size += len(w)
	}
	if res.StatusCode != 201 || len(res.Header["Warning"]) != maxWarnings+1 || size > 10_000 {
		t.Errorf("got %d with %d warnings of %d bytes, want %d warnings", res.StatusCode, len(res.Header["Warning"]),
			size, maxWarnings+1)
	}
}

// Another program that writes to the database may store duplicate members.
func TestStoredDuplicatesCanBePatched(t *testing.T) {
	a := startServer(t, nil)
	r, _ := FindResource(a.Resources(), "pods")
	key := listwatch.Key{Namespace: "default", Name: "one"}
	draft := &store.Draft{
		Key: key,
		Before: []byte(
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"one","namespace":"default","resourceVersion":`),
		After: []byte(`},"spec":{"a":1,"a":2}}`),
	}
	if _, err := a.Collection(r).Backend().Commit(t.Context(), store.Change{Key: key, New: draft}); err != nil {
		t.Fatal(err)
	}
	got := a.want(t, 200, "PATCH", pods+"/one", `{"spec":{"b":3}}`, "Content-Type", mergePatchType)
	if !strings.Contains(got, `"spec":{"a":2,"b":3}`) {
		t.Errorf("got %s, want the last a", got)
	}
}

func TestEveryWriteChecksMetadataTypes(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", deployments, webDeployment)
	const wrong = `{"metadata":{"name":"web","ownerReferences":"x"}}`
	const want = `metadata.ownerReferences: want a list, got "x"`
	for _, c := range []struct {
		method, path, body, mediaType string
		code                          int
		reason                        string
	}{
		{"POST", deployments, wrong, "application/json", 400, "BadRequest"},
		{"POST", deployments, "metadata: {name: web, ownerReferences: x}", "application/yaml", 400, "BadRequest"},
		{"PUT", deployments + "/web", wrong, "application/json", 400, "BadRequest"},
		{"PUT", deployments + "/web/status", wrong, "application/json", 400, "BadRequest"},
		{"PUT", deployments + "/web/scale", wrong, "application/json", 400, "BadRequest"},
		{"PATCH", deployments + "/web", wrong, mergePatchType, 422, "Invalid"},
		{"PATCH", deployments + "/web", wrong, strategicPatchType, 422, "Invalid"},
		{
			"PATCH", deployments + "/web", `[{"op":"add","path":"/metadata/ownerReferences","value":"x"}]`,
			jsonPatchType,
			422, "Invalid",
		},
		{"PATCH", deployments + "/web/status", wrong, mergePatchType, 422, "Invalid"},
		{"PATCH", deployments + "/web/scale", wrong, mergePatchType, 422, "Invalid"},
	} {
		s := a.wantError(t, c.code, c.reason, c.method, c.path, c.body, "Content-Type", c.mediaType)
		if !strings.HasSuffix(s.Message, want) {
			t.Errorf("%s %s as %s: got %q, want %q", c.method, c.path, c.mediaType, s.Message, want)
		}
	}
	a.wantError(t, 400, "BadRequest", "PUT", deployments+"/web/status", `{"kind":"Pod","status":{}}`)
}

func TestCreateRejectsResourceVersion(t *testing.T) {
	a := startServer(t, nil)
	s := a.wantError(t, 400, "BadRequest", "POST", pods, `{"metadata":{"name":"one","resourceVersion":"7"}}`)
	if s.Message != "resourceVersion should not be set on objects to be created" {
		t.Errorf("got message %q", s.Message)
	}
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"one","resourceVersion":"0"}}`)
}

func TestOutOfRangeNumbersAreRefused(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", gadgets, `{"metadata":{"name":"one"}}`)
	long := strings.Repeat("9", 400)
	for spec, number := range map[string]string{
		`1e400`: `1e400`, `{"a":["\\\"",-1.5E+309]}`: `-1.5E+309`,
		long: long[:40],
	} {
		odd := `"odd":` + spec
		object := `{"metadata":{"name":"one"},` + odd + `}`
		for _, c := range []struct{ method, path, body, mediaType string }{
			{"POST", "", object, jsonType},
			{"POST", "?fieldValidation=Ignore", object, jsonType},
			{"POST", "", object, yamlType},
			{"PUT", "/one", object, jsonType},
			{"PATCH", "/one", `{` + odd + `}`, mergePatchType},
			{"PATCH", "/one", `[{"op":"add","path":"/odd","value":` + spec + `}]`, jsonPatchType},
			{
				"PATCH", "/one?fieldManager=m",
				`{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"one"},` + odd + `}`,
				applyPatchType,
			},
		} {
			s := a.wantError(t, 400, "BadRequest", c.method, gadgets+c.path, c.body, "Content-Type", c.mediaType)
			if want := "the number " + number +
				" is beyond the range of 64-bit floating point"; !strings.HasPrefix(s.Message, want) {
				t.Errorf("%s %s as %s: got %q, want %q", c.method, c.path, c.mediaType, s.Message, want)
			}
		}
	}
}

func TestNumbersInRangeAreStoredAsWritten(t *testing.T) {
	a := startServer(t, nil)
	numbers := `["1e400",1e308,1e-400,-0,9007199254740993,18446744073709551616,` + strings.Repeat("9", 300) + `]`
	a.want(t, 201, "POST", gadgets+"?fieldValidation=Strict", `{"metadata":{"name":"one"},"odd":`+numbers+`}`)
	if got := a.want(t, 200, "GET", gadgets+"/one", ""); !strings.Contains(got, numbers) {
		t.Errorf("got %s, want %s", got, numbers)
	}
}

// Another program may have stored a number that the server rejects in the writes of clients.
func TestStoredOutOfRangeNumbersAreNoObstacle(t *testing.T) {
	a := startServer(t, nil)
	resources := a.Resources()
	c := a.Collection(resources[len(resources)-1])
	for _, tracked := range []string{
		"",
		`,"managedFields":[{"manager":"m","operation":"Update","apiVersion":"demo.example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:odd":{}}}]`,
	} {
		object := `{"metadata":{"name":"one"` + tracked + `},"odd":`
		if _, err := c.Create(t.Context(), []byte(object+`1e400}`)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/one", ""} {
			if got := a.want(t, 200, "GET", gadgets+path, ""); !strings.Contains(got, `"odd":1e400`) {
				t.Errorf("GET %s: got %s, want the number as written", path, got)
			}
		}
		got := a.want(t, 200, "PATCH", gadgets+"/one", `{"other":1}`, "Content-Type", mergePatchType)
		if !strings.Contains(got, `"odd":1e400,"other":1`) {
			t.Errorf("PATCH: got %s, want the number as written", got)
		}
		a.want(t, 200, "PUT", gadgets+"/one", object+`1}`)
		if _, err := c.Update(t.Context(), listwatch.Key{Name: "one"}, listwatch.Preconditions{},
			func(*listwatch.Object) ([]byte, error) {
				return []byte(object + `1e400}`), nil
			}); err != nil {
			t.Fatal(err)
		}
		a.want(t, 200, "PATCH", gadgets+"/one", `[{"op":"remove","path":"/odd"}]`, "Content-Type", jsonPatchType)
		a.want(t, 200, "DELETE", gadgets+"/one", "")
	}
}

func TestTooDeepBodiesAreRejected(t *testing.T) {
	a := startServer(t, nil)
	nested := func(n int) string {
		return `{"metadata":{"name":"one"},"odd":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	if s := a.wantError(t, 400, "BadRequest", "POST", pods,
		nested(241)); s.Message != "the object is nested 241 levels deep; 240 are allowed" {
		t.Errorf("got message %q", s.Message)
	}
	a.want(t, 201, "POST", pods, nested(240))
	a.wantError(t, 400, "BadRequest", "PATCH", pods+"/one", `[{"op":"copy","from":"/odd","path":"/odd/0"}]`,
		"Content-Type", jsonPatchType)
	if s := a.wantError(t, 400, "BadRequest", "POST", pods, "\ufeff"+object("two")); !strings.Contains(s.Message,
		"byte order mark") {
		t.Errorf("got %q, want it to mention the byte order mark", s.Message)
	}
}

func TestWrongKindIsRejected(t *testing.T) {
	a := startServer(t, nil)
	s := a.wantError(t, 400, "BadRequest", "POST", pods, `{"kind":"List","apiVersion":"v1","items":[]}`)
	if s.Message != `kind is "List", but pods holds "Pod"` {
		t.Errorf("got message %q", s.Message)
	}
}

func TestKubernetesFieldsAreTypeChecked(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods,
		`{"metadata":{"name":"one"},"spec":{"containers":[{"name":"a","mine":{"any":[7]}}]},"mine":7}`)
	for body, want := range map[string]string{
		`"spec":7`:                 `spec: want an object, got 7`,
		`"spec":{"containers":{}}`: `spec.containers: want a list, got an object`,
		`"spec":{"containers":[{"ports":[{"containerPort":"80"}]}]}`: `spec.containers[0].ports[0].containerPort: want a 32-bit integer, got "80"`,
		`"spec":{"nodeSelector":{"a.b":true}}`:                       `spec.nodeSelector["a.b"]: want a string, got true`,
		`"status":{"startTime":"soon"}`:                              `status.startTime: want a time such as "2006-01-02T15:04:05Z", got "soon"`,
	} {
		body = `{"metadata":{"name":"one"},` + body + `}`
		for method, path := range map[string]string{"POST": pods, "PUT": pods + "/one"} {
			if s := a.wantError(t, 400, "BadRequest", method, path, body); s.Message != want {
				t.Errorf("%s %s: got %q, want %q", method, body, s.Message, want)
			}
		}
		if s := a.wantError(t, 422, "Invalid", "PATCH", pods+"/one", body, "Content-Type",
			mergePatchType); !strings.HasSuffix(s.Message, want) {
			t.Errorf("patch %s: got %q, want %q", body, s.Message, want)
		}
	}
	a.want(t, 201, "POST", "/apis/demo.example.com/v1/gadgets", `{"metadata":{"name":"one"},"spec":7}`)
}
