package kubeapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A testServer serves the default resources and a cluster-scoped one.
type testServer struct {
	*Handler
	url string
}

// startServer starts a testServer. If change is not nil, it modifies the Handler first.
func startServer(t *testing.T, change func(*Handler)) *testServer {
	t.Helper()
	h := &Handler{}
	db := memory.Open(memory.Options{})
	gadget, err := ParseResource("gadgets.v1.demo.example.com=Gadget,cluster")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range append(DefaultResources(), gadget) {
		c, err := db.Collection(r.CollectionSpec())
		if err == nil {
			err = h.Add(r, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(h)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = h.Drain(ctx) // Drain ends watches that the test has left open
		server.Close()
	})
	return &testServer{h, server.URL}
}

// do sends a request. header consists of pairs of a name and a value.
func (a *testServer) do(t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	return testkit.Do(t, http.DefaultTransport, method, a.url+path, body, header...)
}

// want sends a request, checks the status code and returns the body of the response.
func (a *testServer) want(t *testing.T, code int, method, path, body string, header ...string) string {
	t.Helper()
	res := a.do(t, method, path, body, header...)
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != code {
		t.Fatalf("%s %s: got %d %s, want %d", method, path, res.StatusCode, data, code)
	}
	return string(data)
}

// wantError sends a request and returns the Status of the response, which must have this
// code and reason.
func (a *testServer) wantError(t *testing.T, code int, reason, method, path, body string,
	header ...string,
) kubestatus.Status {
	t.Helper()
	var s kubestatus.Status
	data := a.want(t, code, method, path, body, header...)
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		t.Fatalf("%s %s: got %s, want a Status: %v", method, path, data, err)
	}
	if s.Kind != "Status" || s.APIVersion != "v1" || s.Status != "Failure" {
		t.Errorf("%s %s: got %s, want a Status of v1 that reports a failure", method, path, data)
	}
	if s.Code != code || s.Reason != reason || s.Message == "" {
		t.Errorf("%s %s: got %s, want code %d, reason %s and a message", method, path, data, code, reason)
	}
	return s
}

const pods = "/api/v1/namespaces/default/pods"

func object(name string) string { return `{"metadata":{"name":"` + name + `"}}` }

func metadata(t *testing.T, data string) listwatch.Metadata {
	t.Helper()
	var o struct{ Metadata listwatch.Metadata }
	if err := json.Unmarshal([]byte(data), &o); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return o.Metadata
}

func TestCreateReadReplaceDelete(t *testing.T) {
	a := startServer(t, nil)
	created := a.want(t, 201, "POST", pods, object("one"), "Content-Type", "application/json")
	if !strings.HasPrefix(created, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"one","namespace":"default",`) {
		t.Errorf("got %s, want kind, apiVersion and namespace filled in", created)
	}
	if got := a.want(t, 200, "GET", pods+"/one", ""); got != created {
		t.Errorf("got %s, want the created object %s", got, created)
	}
	old := metadata(t, created)
	labelled := strings.Replace(created, `"name":"one"`, `"name":"one","labels":{"a":"b"}`, 1)
	replaced := metadata(t, a.want(t, 200, "PUT", pods+"/one", labelled))
	if replaced.UID != old.UID || replaced.Labels["a"] != "b" || replaced.Version() <= old.Version() {
		t.Errorf("got %+v, want the same object with a label and a version after %s", replaced, old.ResourceVersion)
	}
	a.wantError(t, 409, "Conflict", "PUT", pods+"/one", labelled)

	var s kubestatus.Status
	if err := json.Unmarshal([]byte(a.want(t, 200, "DELETE", pods+"/one", "")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Status != "Success" || s.Details.Name != "one" || s.Details.Kind != "pods" || s.Details.UID != old.UID {
		t.Errorf("got %+v %+v, want Success with the deleted object", s, s.Details)
	}
	missing := a.wantError(t, 404, "NotFound", "GET", pods+"/one", "")
	if missing.Message != `pods "one" not found` || missing.Details.Kind != "pods" {
		t.Errorf("got %+v, want Kubernetes' message", missing)
	}
}

func TestInvalidRequestsFailAsInKubernetes(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("there"))
	for _, c := range []struct {
		what, method, path, body, reason string
		code                             int
	}{
		{"existing name", "POST", pods, object("there"), "AlreadyExists", 409},
		{"no body", "POST", pods, "", "BadRequest", 400},
		{"body that is not JSON", "POST", pods, "a=b", "BadRequest", 400},
		{"wrong kind", "POST", pods, `{"kind":"Service","metadata":{"name":"x"}}`, "BadRequest", 400},
		{"wrong namespace", "POST", pods, `{"metadata":{"name":"x","namespace":"other"}}`, "BadRequest", 400},
		{"no name", "POST", pods, `{"metadata":{}}`, "Invalid", 422},
		{"invalid name", "POST", pods, object("Not_A_Name"), "Invalid", 422},
		{"PUT with another name", "PUT", pods + "/there", object("x"), "BadRequest", 400},
		{"PUT of a missing object with another name", "PUT", pods + "/absent", object("x"), "BadRequest", 400},
		{"PUT of a missing object without a name", "PUT", pods + "/absent", `{"metadata":{}}`, "BadRequest", 400},
		{
			"PUT of a missing object in another namespace", "PUT", pods + "/absent",
			`{"metadata":{"name":"absent","namespace":"x"}}`, "BadRequest", 400,
		},
		{"PUT of a missing status with another name", "PUT", pods + "/absent/status", object("x"), "BadRequest", 400},
		{
			"PUT of a missing status in another namespace", "PUT", pods + "/absent/status",
			`{"metadata":{"name":"absent","namespace":"x"}}`, "BadRequest", 400,
		},
		{"PUT of a missing status", "PUT", pods + "/absent/status", object("absent"), "NotFound", 404},
		{"PUT of a missing object", "PUT", pods + "/absent", object("absent"), "NotFound", 404},
		{
			"PUT with an invalid version", "PUT", pods + "/there",
			`{"metadata":{"name":"there","resourceVersion":"x"}}`,
			"BadRequest", 400,
		},
		{"delete of a missing object", "DELETE", pods + "/absent", "", "NotFound", 404},
		{"delete with another UID", "DELETE", pods + "/there", `{"preconditions":{"uid":"x"}}`, "Conflict", 409},
		{
			"delete with another version", "DELETE", pods + "/there",
			`{"kind":"DeleteOptions","preconditions":{"resourceVersion":"1"}}`, "Conflict", 409,
		},
		{"delete with a body of the wrong kind", "DELETE", pods + "/there", `{"kind":"Pod"}`, "BadRequest", 400},
		{"delete of a collection with preconditions", "DELETE", pods, `{"preconditions":{"uid":"x"}}`, "Conflict", 409},
		{"delete of a collection with an invalid limit", "DELETE", pods + "?limit=x", "", "BadRequest", 400},
		{"delete with an invalid label selector", "DELETE", pods + "?labelSelector=a%3D%3D%3Db", "", "BadRequest", 400},
		{"delete with an unknown field selector", "DELETE", pods + "?fieldSelector=spec.x%3Db", "", "BadRequest", 400},
		{"create without a namespace", "POST", "/api/v1/pods", object("x"), "MethodNotAllowed", 405},
		{"delete in all namespaces", "DELETE", "/api/v1/pods", "", "MethodNotAllowed", 405},
		{"patch of a collection", "PATCH", pods, `{}`, "MethodNotAllowed", 405},
		{"patch without a Content-Type", "PATCH", pods + "/there", `{}`, "UnsupportedMediaType", 415},
		{"delete of the status", "DELETE", pods + "/there/status", "", "MethodNotAllowed", 405},
		{"POST to a watch path", "POST", "/api/v1/watch/namespaces/default/pods", object("x"), "MethodNotAllowed", 405},
	} {
		t.Run(c.what, func(t *testing.T) {
			a.wantError(t, c.code, c.reason, c.method, c.path, c.body)
			if c.code == 405 && a.do(t, c.method, c.path, c.body).Header.Get("Allow") == "" {
				t.Error("405 without an Allow header")
			}
		})
	}
	if m := metadata(t, a.want(t, 200, "GET", pods+"/there", "")); m.Generation != 1 {
		t.Errorf("got %+v, want the object unchanged", m)
	}
}

func TestBodySizeAndMediaTypeAreChecked(t *testing.T) {
	a := startServer(t, func(h *Handler) { h.MaxBodyBytes = 1000 })
	for _, c := range []struct {
		mediaType string
		code      int
	}{
		{"", 201},
		{"application/json", 201},
		{"application/json; charset=utf-8", 201},
		{"application/x-www-form-urlencoded", 201},   // the default type of curl -d
		{"application/vnd.kubernetes.protobuf", 400}, // the body is JSON, not protobuf
		{"application/yaml", 201},                    // JSON is YAML
		{"application/cbor", 400},                    // the body is JSON, not CBOR
		{"application/apply-patch+yaml", 415},
		{"application/cbor-seq", 415},
		{"text/plain", 415},
		{"a b", 415},
	} {
		t.Run(c.mediaType, func(t *testing.T) {
			a.want(t, c.code, "POST", pods, `{"metadata":{"generateName":"one-"}}`, "Content-Type", c.mediaType)
		})
	}
	large := `{"metadata":{"name":"large"},"x":"` + strings.Repeat("x", 1000) + `"}`
	a.wantError(t, 413, "RequestEntityTooLarge", "POST", pods, large)

	// Without Content-Length the server knows the size only after reading the body.
	r, err := http.NewRequestWithContext(t.Context(), "POST", a.url+pods, io.MultiReader(strings.NewReader(large)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 413 {
		t.Errorf("chunked body beyond the limit: got %d, want 413", res.StatusCode)
	}
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	a := startServer(t, nil)
	for _, path := range []string{
		"/nope", "/api/v2", "/api/v2/pods", "/api/v1/nope", "/apis/nope", "/apis/apps/v2", "/apis/nope/v1",
		"/apis/apps/v2/deployments",
		"/api/v1/pods/one", "/api/v1/namespaces/default/namespaces",
		"/apis/demo.example.com/v1/namespaces/default/gadgets",
		pods + "/one/log", "/api/v1/namespaces/default/status", "/api/v1/watch", "/api/v1//pods",
		"/api/v1/namespaces/default/pods/a/b/c",
	} {
		a.wantError(t, 404, "NotFound", "GET", path, "")
	}
}

// events returns the first n events of the watch at path, formatted as "TYPE
// namespace/name".
func (a *testServer) events(t *testing.T, path string, n int) []string {
	t.Helper()
	res := a.do(t, "GET", path, "")
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("%s: got %d", path, res.StatusCode)
	}
	var got []string
	for lines := bufio.NewScanner(res.Body); len(got) < n && lines.Scan(); {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		m := metadata(t, string(e.Object))
		got = append(got, fmt.Sprintf("%s %s", e.Type, m.Key()))
	}
	return got
}

func TestEveryWatchPathWorks(t *testing.T) {
	a := startServer(t, nil)
	for _, ns := range []string{"a", "b"} {
		for _, name := range []string{"one", "two"} {
			a.want(t, 201, "POST", "/api/v1/namespaces/"+ns+"/pods", object(name))
			a.want(t, 201, "POST", "/apis/apps/v1/namespaces/"+ns+"/deployments", object(name))
		}
		a.want(t, 201, "POST", "/api/v1/namespaces", object(ns))
	}
	a.want(t, 201, "POST", "/apis/demo.example.com/v1/gadgets", object("g"))
	all := []string{"ADDED a/one", "ADDED a/two", "ADDED b/one", "ADDED b/two"}
	for _, c := range []struct {
		path string
		want []string
	}{
		{"/api/v1/pods?watch=true", all},
		{"/api/v1/pods?watch=yes", all},
		{"/api/v1/pods?watch=True", all},
		{"/api/v1/pods/?watch=1", all},
		{"/api/v1/watch/pods", all},
		{"/api/v1/watch/pods?watch=yes", all},
		{"/api/v1/watch/pods?watch=0", all},
		{"/apis/apps/v1/deployments?watch", all},
		{"/apis/apps/v1/watch/deployments", all},
		{"/api/v1/namespaces/b/pods?watch=1", all[2:]},
		{"/api/v1/watch/namespaces/b/pods", all[2:]},
		{"/api/v1/watch/namespaces/b/pods/two", all[3:]},
		{"/apis/apps/v1/watch/namespaces/a/deployments/one", all[:1]},
		{"/apis/apps/v1/namespaces/a/deployments?watch=true&fieldSelector=metadata.name%3Dtwo", all[1:2]},
		{"/api/v1/namespaces?watch=1", []string{"ADDED a", "ADDED b"}},
		{"/api/v1/watch/namespaces/b", []string{"ADDED b"}},
		{"/apis/demo.example.com/v1/watch/gadgets/g", []string{"ADDED g"}},
	} {
		t.Run(c.path, func(t *testing.T) {
			if got := a.events(t, c.path, len(c.want)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestListHasItsKindAndScope(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", "/apis/apps/v1/namespaces/a/deployments", object("one"))
	a.want(t, 201, "POST", "/apis/apps/v1/namespaces/b/deployments", object("one"))
	got := a.want(t, 200, "GET", "/apis/apps/v1/namespaces/b/deployments", "")
	if !strings.HasPrefix(got, `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"`) ||
		strings.Count(got, `"uid"`) != 1 {
		t.Errorf("got %s, want a DeploymentList of one object", got)
	}
	a.wantError(t, 400, "BadRequest", "GET", pods+"?watch=maybe", "")
}

func TestGetSupportsPrettyVersionAndAccept(t *testing.T) {
	a := startServer(t, nil)
	created := metadata(t, a.want(t, 201, "POST", pods, object("one")))
	if got := a.want(t, 200, "GET", pods+"/one?pretty=true", ""); !strings.HasPrefix(got, "{\n  \"kind\": \"Pod\",\n") {
		t.Errorf("got %s, want indented JSON", got)
	}
	a.want(t, 200, "GET", pods+"/one?resourceVersion="+created.ResourceVersion, "")
	a.want(t, 200, "GET", pods+"/one?resourceVersion=0", "")
	a.wantError(t, 400, "BadRequest", "GET", pods+"/one?resourceVersion=x", "")
	a.wantError(t, 406, "NotAcceptable", "GET", pods+"/one", "", "Accept", "application/yaml")
	res := a.do(t, "HEAD", pods+"/one", "")
	if res.StatusCode != 200 || res.ContentLength <= 0 || res.Header.Get("Listwatch-Epoch") == "" {
		t.Errorf("HEAD: got %d, length %d, %v, want 200 with a length and an epoch",
			res.StatusCode, res.ContentLength, res.Header)
	}
}

func TestPathSegmentsAreUnescapedOnce(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("one"))
	a.want(t, 200, "GET", "/api/v1/namespaces/default/pods/%6fne", "")
	s := a.wantError(t, 404, "NotFound", "GET", pods+"/x%2Fone", "")
	if s.Details.Name != "x/one" {
		t.Errorf("got %+v, want a name that contains a slash", s.Details)
	}
}

func TestHealthVersionAndIndex(t *testing.T) {
	a := startServer(t, func(h *Handler) {
		h.Server.Access.Authenticator = func(*http.Request) (User, error) {
			return User{},
				errors.New("no credentials accepted")
		}
	})
	for _, path := range healthPaths {
		if got := a.want(t, 200, "GET", path, ""); got != "ok" {
			t.Errorf("%s: got %q, want ok", path, got)
		}
		a.wantError(t, 405, "MethodNotAllowed", "POST", path, "")
	}
	if got := a.want(t, 200, "GET", "/version", ""); !strings.Contains(got, `"gitVersion":"v`) {
		t.Errorf("got %s, want a version", got)
	}
	a.wantError(t, 401, "Unauthorized", "GET", "/", "")
	if err := a.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.want(t, 503, "GET", "/readyz", "")
	a.want(t, 200, "GET", "/livez", "")

	index := startServer(t, nil).want(t, 200, "GET", "/", "")
	for _, path := range []string{"/api/v1/pods", "/apis/apps/v1/deployments", "/readyz"} {
		if !strings.Contains(index, `"`+path+`"`) {
			t.Errorf("got %s, want it to contain %s", index, path)
		}
	}
}

func TestCrossOriginWritesAreForbidden(t *testing.T) {
	a := startServer(t, func(h *Handler) { h.Server.Access.Origins = []string{"https://app.example.com"} })
	a.wantError(t, 403, "Forbidden", "POST", pods, object("x"), "Origin", "https://evil.example.com")
	a.want(t, 201, "POST", pods, object("x"), "Origin", "https://app.example.com")
	a.wantError(t, 403, "Forbidden", "DELETE", pods+"/x", "", "Origin", "null")
	a.want(t, 200, "DELETE", pods+"/x", "", "Origin", a.url)
	// CORS does not let the page read the response.
	a.want(t, 200, "GET", pods, "", "Origin", "https://evil.example.com")
}

func TestAddRejectsPathInUse(t *testing.T) {
	var h Handler
	r := DefaultResources()[0]
	if err := h.Add(r, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Add(r, nil); !errors.Is(err, listwatch.AlreadyExists) {
		t.Errorf("got %v, want AlreadyExists", err)
	}
	if got := h.Resources(); len(got) != 1 || got[0].Kind != "Pod" {
		t.Errorf("got %v, want pods", got)
	}
}

func TestNewHandlerTakesResourcesFromAnother(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("one"))
	next := &Handler{}
	for _, r := range a.Resources() {
		if r.Plural != "configmaps" && !next.AddFrom(a.Handler, a.Collection(r)) {
			t.Errorf("%s is not served", r.QualifiedName())
		}
	}
	server := httptest.NewServer(next)
	defer server.Close()
	b := &testServer{next, server.URL}
	b.want(t, 200, "GET", pods+"/one", "")
	b.wantError(t, 404, "NotFound", "GET", "/api/v1/namespaces/default/configmaps", "")
	other := testkit.Must(memory.Open(memory.Options{}).Collection(DefaultResources()[0].CollectionSpec()))(t)
	if next.AddFrom(a.Handler, other) {
		t.Error("a collection that is not served was added")
	}
}
