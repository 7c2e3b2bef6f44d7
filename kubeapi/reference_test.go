package kubeapi

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch/store/memory"
)

// The tests in this file expect the responses of Kubernetes' generic API server.

func TestInvalidWritesFailWithCausesOfKubernetes(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("x"))
	const marks = `{"metadata":{"name":"x","deletionTimestamp":"2030-01-01T00:00:00Z"}}`
	const twoFinalizers = `{"metadata":{"name":"x","finalizers":["orphan","foregroundDeletion"]}}`
	const eventOwner = `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}]}}`
	for _, c := range []refusal{
		{
			method: "PATCH", body: `{"metadata":{"uid":"other"}}`, mediaType: mergePatchType, code: 422, kind: "Pod",
			causes: []string{"metadata.uid"},
		},
		{method: "PUT", body: `{"metadata":{"name":"x","uid":"other"}}`, code: 409, kind: "pods"},
		{method: "PUT", body: marks, code: 422, kind: "Pod", causes: []string{"metadata.deletionTimestamp"}},
		{
			method: "PATCH", body: marks, mediaType: mergePatchType, code: 422, kind: "Pod",
			causes: []string{"metadata.deletionTimestamp"},
		},
		{
			method: "PATCH", body: `{"metadata":{"deletionGracePeriodSeconds":5}}`, mediaType: mergePatchType,
			code: 422, kind: "Pod", causes: []string{"metadata.deletionGracePeriodSeconds"},
		},
		{method: "PUT", body: eventOwner, code: 422, kind: "Pod", causes: []string{"metadata.ownerReferences[0]"}},
		{method: "PUT", body: twoFinalizers, code: 422, kind: "Pod", causes: []string{"metadata.finalizers"}},
		{
			method: "PATCH", body: `{"kind":"Service"}`, mediaType: mergePatchType, code: 422, kind: "Pod",
			causes: []string{"kind"},
		},
		{
			method: "PATCH", body: `{"apiVersion":"v2"}`, mediaType: mergePatchType, code: 422, kind: "Pod",
			causes: []string{"apiVersion"},
		},
		{method: "PATCH", body: `[{"op":"bad","path":"/a"}]`, mediaType: jsonPatchType, code: 422},
		{method: "PATCH", body: `[{"op":"copy","path":"/a"}]`, mediaType: jsonPatchType, code: 422},
		{method: "PATCH", body: `[{"op":"remove"}]`, mediaType: jsonPatchType, code: 422},
		{method: "DELETE", body: `{"preconditions":{"uid":"other"}}`, code: 409, kind: "Pod"},
		{method: "DELETE", body: `{"preconditions":{"resourceVersion":"999"}}`, code: 409, kind: "Pod"},
	} {
		c.path = pods + "/x"
		c.check(t, a)
	}
	for _, c := range []refusal{
		{body: `{"spec":{}}`, code: 422, kind: "Pod", causes: []string{"metadata.name"}},
		{
			body: `{"metadata":{"name":"y","generateName":"AB-"}}`, code: 422, kind: "Pod",
			causes: []string{"metadata.generateName"},
		},
		{
			body: `{"metadata":{"generateName":"AB-"}}`, code: 422, kind: "Pod",
			causes: []string{"metadata.generateName", "metadata.name"},
		},
		{
			body: strings.Replace(eventOwner, `"x"`, `"y"`, 1), code: 422, kind: "Pod",
			causes: []string{"metadata.ownerReferences[0]"},
		},
	} {
		c.method, c.path = "POST", pods
		c.check(t, a)
	}
}

func TestConflictBesideGenerateNameHasRetryAfter(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("x"))
	s := a.wantError(t, 409, "AlreadyExists", "POST", pods, `{"metadata":{"name":"x","generateName":"y-"}}`)
	if s.Details == nil || s.Details.RetryAfterSeconds != 1 || s.Details.Kind != "pods" {
		t.Errorf("got %+v, want retryAfterSeconds 1", s.Details)
	}
}

func TestDryRunAnswerHasNoVersion(t *testing.T) {
	a := startServer(t, nil)
	if got := a.want(t, 201, "POST", pods+"?dryRun=All", object("x")); strings.Contains(got, "resourceVersion") {
		t.Errorf("got %s, want no resourceVersion", got)
	}
}

func TestRepeatedOwnersAreDroppedWithWarning(t *testing.T) {
	const owner = `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1"}`
	const same = `{"uid":"u1","kind":"Pod","name":"p","apiVersion":"v1"}`
	const other = `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1","controller":true}`
	const body = `{"metadata":{"name":"x","ownerReferences":[` + owner + `,` + same + `,` + other +
		`]},"spec":{"a":1.0}}`
	a := startServer(t, nil)
	for _, c := range []struct {
		method, path, mediaType string
		code                    int
	}{
		{"POST", pods, "application/json", 201},
		{"PUT", pods + "/x", "application/json", 200},
		{"PATCH", pods + "/x", mergePatchType, 200},
	} {
		res := a.do(t, c.method, c.path, body, "Content-Type", c.mediaType)
		warnings := strings.Join(res.Header["Warning"], "\n")
		if res.StatusCode != c.code || !strings.Contains(warnings, "duplicate UID(s) observed: u1") {
			t.Errorf("%s: got %d with warnings %q", c.method, res.StatusCode, warnings)
		}
		if got := a.want(t, 200, "GET", pods+"/x", ""); !strings.Contains(got,
			`"ownerReferences":[`+owner+`,`+other+`]`) || !strings.Contains(got, `{"a":1.0}`) {
			t.Errorf("%s: got %s, want each owner once", c.method, got)
		}
	}
}

func TestNullLabelPatchOfPlainObjectIsNoWrite(t *testing.T) {
	a := startServer(t, nil)
	created := a.want(t, 201, "POST", pods, object("x"))
	if got := a.want(t, 200, "PATCH", pods+"/x", `{"metadata":{"labels":{"a":null}}}`, "Content-Type",
		mergePatchType); got != created {
		t.Errorf("got %s, want %s", got, created)
	}
}

func TestClusterWideObjectsDropNamespace(t *testing.T) {
	a := startServer(t, nil)
	for _, c := range []struct {
		method, path string
		code         int
	}{{"POST", gadgets, 201}, {"PUT", gadgets + "/x", 200}} {
		if got := a.want(t, c.code, c.method, c.path,
			`{"metadata":{"name":"x","namespace":"n"}}`); strings.Contains(got, "namespace") {
			t.Errorf("%s: got %s, want no namespace", c.method, got)
		}
	}
}

func TestUpdateWithoutStatusKeepsStatus(t *testing.T) {
	plain, err := ParseResource("plains.v1.demo.example.com=Plain")
	if err != nil {
		t.Fatal(err)
	}
	plain.NoStatus = true
	a := startServer(t, func(h *Handler) {
		c, err := memory.Open(memory.Options{}).Collection(plain.CollectionSpec())
		if err == nil {
			err = h.Add(plain, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	for _, c := range []struct{ path, kept string }{
		{pods, `"spec":{"a":2},"status":{"phase":"Running"}`},
		{"/apis/demo.example.com/v1/namespaces/default/plains", `"spec":{"a":2}}`},
	} {
		a.want(t, 201, "POST", c.path, `{"metadata":{"name":"x"},"spec":{"a":1},"status":{"phase":"Running"}}`)
		if got := a.want(t, 200, "PUT", c.path+"/x", `{"metadata":{"name":"x"},"spec":{"a":2}}`); !strings.Contains(got,
			c.kept) {
			t.Errorf("%s: got %s, want %s", c.path, got, c.kept)
		}
		if got := a.want(t, 200, "PUT", c.path+"/x",
			`{"metadata":{"name":"x"},"status":{"phase":"Failed"}}`); !strings.Contains(got, `{"phase":"Failed"}`) {
			t.Errorf("%s: got %s, want the status written", c.path, got)
		}
		if got := a.want(t, 200, "PATCH", c.path+"/x", `{"status":null}`, "Content-Type",
			mergePatchType); strings.Contains(got, `"status"`) {
			t.Errorf("%s: got %s, want the status deleted", c.path, got)
		}
	}
	a.wantError(t, 404, "NotFound", "GET", "/apis/demo.example.com/v1/namespaces/default/plains/x/status", "")
}

func TestCustomResourcesRequireVersion(t *testing.T) {
	r, err := ParseResource("plains.v1.demo.example.com=Plain")
	if err != nil {
		t.Fatal(err)
	}
	r.Custom = true
	a := startServer(t, func(h *Handler) {
		c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
		if err == nil {
			err = h.Add(r, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	path := r.Path("default")
	const plainX = `{"apiVersion":"demo.example.com/v1","kind":"Plain","metadata":{"name":"x"}}`
	created := a.want(t, 201, "POST", path, plainX)
	a.wantError(t, 404, "NotFound", "PUT", path+"/none", strings.Replace(plainX, `"x"`, `"none"`, 1))
	s := a.wantError(t, 422, "Invalid", "PUT", path+"/x", plainX)
	if s.Details == nil || len(s.Details.Causes) != 1 || s.Details.Causes[0].Field != "metadata.resourceVersion" ||
		s.Details.Kind != "plains" {
		t.Errorf("got %+v, want a cause", s.Details)
	}
	a.wantError(t, 400, "BadRequest", "POST", path, object("y"))
	a.wantError(t, 422, "Invalid", "POST", path, strings.Replace(plainX, "Plain", "Other", 1))
	a.wantError(t, 404, "NotFound", "PUT", path+"/none",
		strings.NewReplacer(`"x"`, `"none"`, "Plain", "Other").Replace(plainX))
	a.wantError(t, 422, "Invalid", "PUT", path+"/x", strings.Replace(created, "Plain", "Other", 1))
	a.want(t, 200, "PUT", path+"/x", created)
	const short = `{"metadata":{"finalizers":["short","example.com","orphan","example.com/a"]}}`
	for _, want := range []int{2, 0} { // the second patch adds no finalizers
		res := a.do(t, "PATCH", path+"/x", short, "Content-Type", mergePatchType)
		if w := res.Header["Warning"]; res.StatusCode != 200 || len(w) != want {
			t.Errorf("got %d with warnings %q, want %d warnings of short finalizers", res.StatusCode, w, want)
		}
	}
}

func TestInvalidVersionIsIgnoredOnCreate(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"x","resourceVersion":"xyz","selfLink":"/other"}}`)
	a.wantError(t, 400, "BadRequest", "POST", pods, `{"metadata":{"name":"y","resourceVersion":"7"}}`)
	if got := a.want(t, 200, "GET", pods+"/x", ""); strings.Contains(got, "xyz") || strings.Contains(got, "selfLink") {
		t.Errorf("got %s, want a version of the server and no selfLink", got)
	}
}

func TestUnknownFieldsAreReported(t *testing.T) {
	a := startServer(t, nil)
	const pod = `{"metadata":{"name":"x"},"spec":{"contaners":[],"containers":[{"name":"a","imag":"b"}]}}`
	const text = `unknown field "spec.contaners", unknown field "spec.containers[0].imag"`
	if s := a.wantError(t, 400, "BadRequest", "POST", pods+"?fieldValidation=Strict",
		pod); !strings.HasSuffix(s.Message, "strict decoding error: "+text) {
		t.Errorf("got %q, want %q", s.Message, text)
	}
	res := a.do(t, "POST", pods, pod)
	if w := res.Header["Warning"]; res.StatusCode != 201 || len(w) != 2 ||
		w[0] != `299 - "unknown field \"spec.contaners\""` {
		t.Errorf("got %d with warnings %q", res.StatusCode, w)
	}
	a.want(t, 200, "PATCH", pods+"/x?fieldValidation=Strict", `{"spec":{"nodeName":"n"}}`, "Content-Type",
		mergePatchType)
	a.wantError(t, 422, "Invalid", "PATCH", pods+"/x?fieldValidation=Strict", `{"spec":{"nodeNam":"n"}}`,
		"Content-Type", mergePatchType)
	if res := a.do(t, "PUT", pods+"/x?fieldValidation=Ignore", pod); res.StatusCode != 200 ||
		res.Header["Warning"] != nil {
		t.Errorf("got %d with warnings %q, want none", res.StatusCode, res.Header["Warning"])
	}
	a.want(t, 201, "POST", gadgets+"?fieldValidation=Strict", `{"metadata":{"name":"x"},"mine":{"any":1}}`)
}
