package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestPatchesChangeOnlyNamedFields(t *testing.T) {
	a := startServer(t, nil)
	created := a.want(t, 201, "POST", pods, `{"metadata":{"name":"one"},"spec":{"n":9007199254740993,"x":1}}`)
	merged := a.want(t, 200, "PATCH", pods+"/one", `{"spec":{"x":2}}`, "Content-Type",
		"application/merge-patch+json; charset=utf-8")
	if !strings.HasSuffix(merged, `"spec":{"n":9007199254740993,"x":2}}`+"\n") || metadata(t, merged).Generation != 2 {
		t.Errorf("got %s, want only x changed", merged)
	}
	patched := a.want(t, 200, "PATCH", pods+"/one?fieldManager=test&fieldValidation=Strict",
		`[{"op":"replace","path":"/spec/x","value":3}]`, "Content-Type", jsonPatchType)
	if !strings.HasSuffix(patched, `"x":3}}`+"\n") {
		t.Errorf("got %s, want x changed", patched)
	}
	same := a.want(t, 200, "PATCH", pods+"/one", `{}`, "Content-Type", mergePatchType)
	if same != patched {
		t.Errorf("got %s, want the object unchanged by an empty patch", same)
	}
	merge := func(code int, reason, patch string) {
		t.Helper()
		a.wantError(t, code, reason, "PATCH", pods+"/one", patch, "Content-Type", mergePatchType)
	}
	merge(409, "Conflict", `{"metadata":{"resourceVersion":"`+metadata(t, created).ResourceVersion+`"},"spec":null}`)
	merge(422, "Invalid", `{"metadata":{"uid":"other"},"spec":null}`)
	merge(400, "BadRequest", `{"metadata":{"name":"two"}}`)
	merge(400, "BadRequest", `{"metadata":null}`)
	merge(422, "Invalid", `{"metadata":{"labels":{"a":"not a label"}}}`)
	a.wantError(t, 422, "Invalid", "PATCH", pods+"/one", `[{"op":"test","path":"/spec/x","value":4}]`, "Content-Type",
		jsonPatchType)
	a.wantError(t, 404, "NotFound", "PATCH", pods+"/none", `{}`, "Content-Type", mergePatchType)
	if got := a.want(t, 200, "GET", pods+"/one", ""); got != patched {
		t.Errorf("got %s, want the result of the last patch", got)
	}
}

func TestConcurrentPatchesAreAllApplied(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("one"))
	const writers = 8
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range 5 {
				a.patchLabel(t, fmt.Sprintf("w%d-%d", i, n))
			}
		})
	}
	wg.Wait()
	m := metadata(t, a.want(t, 200, "GET", pods+"/one", ""))
	if len(m.Labels) != writers*5 {
		t.Errorf("got %d labels, want %d", len(m.Labels), writers*5)
	}
}

// patchLabel adds a label to the pod one. It may be called from any goroutine, because it
// does not call t.Fatal.
func (a *testServer) patchLabel(t *testing.T, name string) {
	r, err := http.NewRequestWithContext(t.Context(), "PATCH", a.url+pods+"/one",
		strings.NewReader(`{"metadata":{"labels":{"`+name+`":"x"}}}`))
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Content-Type", mergePatchType)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("%s: got %d, want 200", name, res.StatusCode)
	}
}

func TestPatchedObjectSizeIsLimited(t *testing.T) {
	a := startServer(t, func(h *Handler) { h.MaxBodyBytes = 1000 })
	a.want(t, 201, "POST", pods, object("one"))
	part := strings.Repeat("x", 500)
	a.want(t, 200, "PATCH", pods+"/one", `{"a":"`+part+`"}`, "Content-Type", mergePatchType)
	a.wantError(t, 413, "RequestEntityTooLarge", "PATCH", pods+"/one", `{"b":"`+part+`"}`, "Content-Type",
		mergePatchType)
}

func TestStatusSubresourceWritesOnlyStatus(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"one"},"spec":{"x":1}}`)
	const status = pods + "/one/status"
	got := a.want(t, 200, "PUT", status,
		`{"metadata":{"name":"one","labels":{"a":"b"}},"spec":{"x":2},"status":{"phase": "Running"}}`)
	if m := metadata(t, got); m.Generation != 1 || m.Labels != nil ||
		!strings.HasSuffix(got, `"spec":{"x":1},"status":{"phase":"Running"}}`+"\n") {
		t.Errorf("got %s, want only the status changed", got)
	}
	got = a.want(t, 200, "PATCH", status, `{"spec":{"x":2},"status":{"n":1}}`, "Content-Type", mergePatchType)
	if !strings.HasSuffix(got, `"spec":{"x":1},"status":{"phase":"Running","n":1}}`+"\n") {
		t.Errorf("got %s, want only the status patched", got)
	}
	if read := a.want(t, 200, "GET", status, ""); read != got {
		t.Errorf("got %s, want the object", read)
	}
	if list := a.want(t, 200, "GET", pods+"?fieldSelector=status.phase%3DRunning", ""); !strings.Contains(list,
		`"one"`) {
		t.Errorf("got %s, want the object selected by its phase", list)
	}
	a.wantError(t, 409, "Conflict", "PUT", status, `{"metadata":{"name":"one","resourceVersion":"1"},"status":{}}`)
	a.wantError(t, 400, "BadRequest", "PUT", status, `{"metadata":{"name":"two"},"status":{}}`)
	a.wantError(t, 400, "BadRequest", "PUT", status, `[]`)
	a.wantError(t, 404, "NotFound", "PUT", pods+"/none/status", object("none"))
	a.wantError(t, 404, "NotFound", "GET", "/api/v1/watch/namespaces/default/pods/one/status", "")
	got = a.want(t, 200, "PUT", status, object("one"))
	if !strings.HasSuffix(got, `"spec":{"x":1}}`+"\n") {
		t.Errorf("got %s, want no status", got)
	}
	a.want(t, 201, "POST", "/api/v1/namespaces", object("n"))
	a.want(t, 200, "PUT", "/api/v1/namespaces/n/status", `{"metadata":{"name":"n"},"status":{"phase":"Active"}}`)
	a.wantError(t, 400, "BadRequest", "PUT", "/api/v1/namespaces/n/status", `{"status":{}}`)
}

func TestNonStringPreconditionsAreRejected(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", deployments, webDeployment)
	for _, patch := range []string{
		`{"metadata":{"resourceVersion":1}}`, `{"metadata":{"uid":{}}}`,
		`{"metadata":{"name":["web"]}}`,
	} {
		for _, path := range []string{webScale, deployments + "/web/status", deployments + "/web"} {
			a.wantError(t, 422, "Invalid", "PATCH", path, patch, "Content-Type", mergePatchType)
		}
	}
	for _, none := range []string{`null`, `""`, `"0"`} {
		a.want(t, 200, "PATCH", deployments+"/web/status", `{"metadata":{"resourceVersion":`+none+`}}`, "Content-Type",
			mergePatchType)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	a := startServer(t, nil)
	const dry = "?dryRun=All"
	if got := metadata(t, a.want(t, 201, "POST", pods+dry, `{"metadata":{"generateName":"one-"}}`)); got.UID == "" ||
		len(got.Name) != len("one-12345") {
		t.Errorf("got %+v, want a complete object", got)
	}
	created := a.want(t, 201, "POST", pods, object("one"))
	a.wantError(t, 409, "AlreadyExists", "POST", pods+dry, object("one"))
	a.want(t, 200, "PUT", pods+"/one"+dry, `{"metadata":{"name":"one"},"spec":{}}`)
	if got := a.want(t, 200, "PATCH", pods+"/one"+dry, `{"spec":{}}`, "Content-Type", mergePatchType); metadata(t,
		got).Generation != 2 {
		t.Errorf("got %s, want the object as the patch would change it", got)
	}
	a.want(t, 200, "DELETE", pods+"/one"+dry, "")
	a.want(t, 200, "DELETE", pods+"/one", `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`)
	a.want(t, 200, "DELETE", pods+dry, "")
	if got := a.want(t, 200, "GET", pods+"/one", ""); got != created {
		t.Errorf("got %s, want the object unchanged", got)
	}
	if list := a.want(t, 200, "GET", pods, ""); strings.Count(list, `"uid"`) != 1 {
		t.Errorf("got %s, want one pod", list)
	}
}

func TestFinalizersDelayDeletion(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"one","finalizers":["demo/hold"]}}`)
	m := metadata(t, a.want(t, 200, "DELETE", pods+"/one", `{"propagationPolicy":"Foreground","gracePeriodSeconds":0}`))
	if m.DeletionTimestamp == nil || m.Name != "one" {
		t.Errorf("got %+v, want the object with a deletionTimestamp", m)
	}
	a.want(t, 200, "PATCH", pods+"/one/status", `{"metadata":{"finalizers":null},"status":{"a":1}}`, "Content-Type",
		mergePatchType)
	a.want(t, 200, "GET", pods+"/one", "")
	a.want(t, 200, "PATCH", pods+"/one", `{"metadata":{"finalizers":null}}`, "Content-Type", mergePatchType)
	a.wantError(t, 404, "NotFound", "GET", pods+"/one", "")
}

func TestDeleteCollectionBySelectors(t *testing.T) {
	a := startServer(t, nil)
	for _, body := range []string{
		`{"metadata":{"name":"one","labels":{"app":"x"}},"status":{"phase":"Running"}}`,
		`{"metadata":{"name":"two","labels":{"app":"x"}},"status":{"phase":"Failed"}}`,
		`{"metadata":{"name":"three","labels":{"app":"y"}}}`,
	} {
		a.want(t, 201, "POST", pods, body)
	}
	a.want(t, 201, "POST", "/api/v1/namespaces/other/pods", `{"metadata":{"name":"one","labels":{"app":"x"}}}`)
	wantPods := func(want ...string) {
		t.Helper()
		if got := a.events(t, "/api/v1/pods?watch=1", len(want)); strings.Join(got, ",") != "ADDED "+
			strings.Join(want, ",ADDED ") {
			t.Errorf("got %v, want the remaining pods %v", got, want)
		}
	}
	a.want(t, 200, "DELETE", pods+"?labelSelector=app%3Dx&fieldSelector=status.phase%3DFailed", "")
	wantPods("default/one", "default/three", "other/one")
	a.want(t, 200, "DELETE", pods+"?labelSelector=app%3Dx", `{"kind":"DeleteOptions","apiVersion":"v1"}`)
	wantPods("default/three", "other/one")
	deleted := a.want(t, 200, "DELETE", pods, "")
	if !strings.HasPrefix(deleted, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"`) ||
		strings.Count(deleted, `"name":`) != 1 ||
		!strings.Contains(deleted, `"name":"three"`) {
		t.Errorf("got %s, want the list of deleted objects", deleted)
	}
	wantPods("other/one")
	if got := a.want(t, 200, "DELETE", pods, ""); !strings.HasSuffix(got, `"items":[]}`+"\n") {
		t.Errorf("got %s, want an empty list", got)
	}
}

func TestAuthorizerReceivesVerbAndSubresource(t *testing.T) {
	var seen []string
	a := startServer(t, func(h *Handler) { h.Authorize = recordingAuthorizer(&seen) })
	a.want(t, 200, "DELETE", pods, "")
	a.want(t, 404, "PATCH", pods+"/one", `{}`, "Content-Type", mergePatchType)
	a.want(t, 404, "PUT", pods+"/one/status", object("one"))
	if got := strings.Join(seen, ","); got != "deletecollection pods/,patch pods/,update pods/status" {
		t.Errorf("the authorizer received %s", got)
	}
}

func recordingAuthorizer(seen *[]string) Authorizer {
	return func(_ context.Context, _ User, a Attributes) error {
		*seen = append(*seen, a.Verb+" "+a.Resource.Plural+"/"+a.Subresource)
		return nil
	}
}

func TestDeleteCollectionUsesRepresentation(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("one"))
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"two","finalizers":["demo/hold"]}}`)
	table := a.want(t, 200, "DELETE", pods, "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	if !strings.HasPrefix(table, `{"kind":"Table"`) || strings.Count(table, `"cells":`) != 2 {
		t.Errorf("got %s, want a table of two rows", table)
	}
	partial := a.want(t, 200, "DELETE", pods, "", "Accept",
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	if !strings.HasPrefix(partial, `{"kind":"PartialObjectMetadataList"`) ||
		strings.Count(partial, `"deletionTimestamp":`) != 1 {
		t.Errorf("got %s, want the object with the finalizer", partial)
	}
}

func TestDeleteChecksEveryPrecondition(t *testing.T) {
	a := startServer(t, nil)
	m := metadata(t, a.want(t, 201, "POST", pods, object("one")))
	with := func(preconditions string) string {
		return `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":` + preconditions + `}`
	}
	for _, p := range []string{
		`{"resourceVersion":"0"}`, `{"resourceVersion":""}`, `{"resourceVersion":"abc"}`, `{"resourceVersion":"1"}`,
		`{"uid":""}`, `{"uid":"x"}`,
		`{"uid":"` + m.UID + `","resourceVersion":"0"}`,
	} {
		a.wantError(t, 409, "Conflict", "DELETE", pods+"/one", with(p))
		a.wantError(t, 404, "NotFound", "DELETE", pods+"/none", with(p))
	}
	s := a.wantError(t, 409, "Conflict", "DELETE", pods+"/one", with(`{"resourceVersion":"0"}`))
	if want := `Pod "one": the ResourceVersion in the precondition (0) does not match the ResourceVersion in record (` +
		m.ResourceVersion + ")"; !strings.Contains(s.Message, want) {
		t.Errorf("got %q, want %q", s.Message, want)
	}
	a.wantError(t, 400, "BadRequest", "DELETE", pods+"/one", with(`{"resourceVersion":7}`))
	a.wantError(t, 409, "Conflict", "DELETE", pods, with(`{"resourceVersion":""}`))
	a.wantError(t, 409, "Conflict", "DELETE", pods+"/one?ignoreStoreReadErrorWithClusterBreakingPotential=true", "")
	a.want(t, 200, "DELETE", pods+"/one", with(`{"uid":"`+m.UID+`","resourceVersion":"`+m.ResourceVersion+`"}`))
}

func TestDeleteOptionsAreValidated(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("one"))
	for body, want := range map[string]string{
		`[]`: "got array", `7`: "got number", `{"kind":"Pod"}`: `the kind is "Pod"`,
		`{"preconditions":7}`:        ": got number",
		`{"gracePeriodSeconds":"x"}`: ": got string",
		`{"dryRun":"All"}`:           ": got string", `{"orphanDependents":1}`: ": got number",
		`{"kind`: "unexpected end",
	} {
		if s := a.wantError(t, 400, "BadRequest", "DELETE", pods+"/one", body); !strings.Contains(s.Message, want) ||
			strings.Contains(s.Message, "kubeapi") {
			t.Errorf("%s: got %q, want %q", body, s.Message, want)
		}
	}
	a.want(t, 200, "DELETE", pods+"/one?gracePeriodSeconds=0&propagationPolicy=Foreground", "")
}

func TestWritesAcceptYAML(t *testing.T) {
	a := startServer(t, nil)
	const mediaType = "application/yaml"
	got := a.want(t, 201, "POST", pods, "metadata:\n  name: one\nspec:\n  n: 9007199254740993\n", "Content-Type",
		mediaType)
	if !strings.HasSuffix(got, `"spec":{"n":9007199254740993}}`+"\n") {
		t.Errorf("got %s, want the number unchanged", got)
	}
	a.want(t, 200, "PUT", pods+"/one", "metadata: {name: one}\nspec: {n: 1}\n", "Content-Type",
		mediaType+"; charset=utf-8")
	a.wantError(t, 400, "BadRequest", "PUT", pods+"/one", "metadata: {name: one", "Content-Type", mediaType)
	a.want(t, 200, "DELETE", pods+"/one", "kind: DeleteOptions\napiVersion: v1\n", "Content-Type", mediaType)
}

// Parsing YAML takes more than a hundred times the memory of the body, so YAML has its own limit.
func TestYAMLBodiesAreLimitedFurther(t *testing.T) {
	a := startServer(t, nil)
	long := strings.Repeat("a,", 200<<10)
	s := a.wantError(t, 413, "RequestEntityTooLarge", "POST", pods, "metadata: {name: one}\nx: ["+long+"]\n",
		"Content-Type", yamlType)
	if !strings.Contains(s.Message, "262144") || !strings.Contains(s.Message, "JSON") {
		t.Errorf("got %q, want the limit and the remedy", s.Message)
	}
	// kubectl and client-go send JSON as YAML.
	json := `{"metadata":{"name":"one"},"x":"` + long + `"}`
	a.want(t, 201, "POST", pods, json, "Content-Type", yamlType)
}

func TestMaxYAMLBytesSetsTheLimit(t *testing.T) {
	a := startServer(t, func(h *Handler) { h.MaxYAMLBytes = 30 })
	a.want(t, 201, "POST", pods, "metadata: {name: one}", "Content-Type", yamlType)
	a.wantError(t, 413, "RequestEntityTooLarge", "POST", pods, "metadata: {name: two} # and a comment", "Content-Type",
		yamlType)
	a = startServer(t, func(h *Handler) { h.MaxYAMLBytes = -1 })
	a.want(t, 201, "POST", pods, "metadata: {name: one}\nx: ["+strings.Repeat("a,", 200<<10)+"]\n", "Content-Type",
		yamlType)
}
