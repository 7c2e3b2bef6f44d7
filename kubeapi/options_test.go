package kubeapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/store/memory"
)

const gadgets = "/apis/demo.example.com/v1/gadgets"

// A refusal is a request that must fail and leave all objects unchanged. Kubernetes' generic API
// server responds with the same codes and causes.
type refusal struct {
	method, path, body string
	mediaType          string
	code               int
	kind               string   // details.kind
	causes             []string // the fields of details.causes
}

func (r refusal) check(t *testing.T, a *testServer) {
	t.Helper()
	before := a.want(t, 200, "GET", pods, "")
	reason := map[int]string{400: "BadRequest", 406: "NotAcceptable", 409: "Conflict", 422: "Invalid"}[r.code]
	s := a.wantError(t, r.code, reason, r.method, r.path, r.body, "Content-Type", r.mediaType)
	var kind string
	var fields []string
	if s.Details != nil {
		kind = s.Details.Kind
		for _, cause := range s.Details.Causes {
			fields = append(fields, cause.Field)
			if cause.Reason == "" || cause.Message == "" {
				t.Errorf("%s %s: got cause %+v, want a reason and a message", r.method, r.path, cause)
			}
		}
	}
	if kind != r.kind || !slices.Equal(fields, r.causes) {
		t.Errorf("%s %s %s: got details of %q with causes %q, want %q with %q: %s", r.method, r.path, r.body, kind,
			fields, r.kind, r.causes, s.Message)
	}
	if after := a.want(t, 200, "GET", pods, ""); after != before {
		t.Fatalf("%s %s %s: changed\n%s\nto\n%s", r.method, r.path, r.body, before, after)
	}
}

func TestInvalidOptionsChangeNothing(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("x"))
	const patch = `{"metadata":{"labels":{"a":"b"}}}`
	for _, c := range []refusal{
		{
			method: "POST", path: pods + "?dryRun=", body: object("new"), code: 422, kind: "CreateOptions",
			causes: []string{"dryRun"},
		},
		{
			method: "POST", path: pods + "?dryRun=None", body: object("new"), code: 422, kind: "CreateOptions",
			causes: []string{"dryRun"},
		},
		{
			method: "POST", path: pods + "?fieldValidation=bad", body: object("new"), code: 422, kind: "CreateOptions",
			causes: []string{"fieldValidation"},
		},
		{
			method: "POST", path: pods + "?fieldManager=a%0Ab", body: object("new"), code: 422, kind: "CreateOptions",
			causes: []string{"fieldManager"},
		},
		{
			method: "PUT", path: pods + "/x?dryRun=", body: `{"metadata":{"name":"x","labels":{"a":"b"}}}`, code: 422,
			kind: "UpdateOptions", causes: []string{"dryRun"},
		},
		{
			method: "PATCH", path: pods + "/x?dryRun=All&dryRun=", body: patch, mediaType: mergePatchType, code: 422,
			kind: "PatchOptions", causes: []string{"dryRun"},
		},
		{
			method: "PATCH", path: pods + "/x?force=true", body: patch, mediaType: mergePatchType, code: 422,
			kind: "PatchOptions", causes: []string{"force"},
		},
		{method: "DELETE", path: pods + "/x?dryRun=", code: 422, kind: "DeleteOptions", causes: []string{"dryRun"}},
		{
			method: "DELETE", path: pods + "/x", body: `{"dryRun":[""]}`, code: 422, kind: "DeleteOptions",
			causes: []string{"dryRun"},
		},
		{
			method: "DELETE", path: pods + "/x?propagationPolicy=", code: 422, kind: "DeleteOptions",
			causes: []string{"propagationPolicy"},
		},
		{
			method: "DELETE", path: pods + "/x?propagationPolicy=Bad", code: 422, kind: "DeleteOptions",
			causes: []string{"propagationPolicy"},
		},
		{
			method: "DELETE", path: pods + "/x", body: `{"propagationPolicy":""}`, code: 422, kind: "DeleteOptions",
			causes: []string{"propagationPolicy"},
		},
		{
			method: "DELETE", path: pods + "/x", body: `{"propagationPolicy":"Orphan","orphanDependents":true}`,
			code: 422, kind: "DeleteOptions", causes: []string{"propagationPolicy"},
		},
		{method: "DELETE", path: pods + "/x?gracePeriodSeconds=x", code: 400},
		{method: "DELETE", path: pods + "/x?uid=other", code: 409, kind: "Pod"},
		{method: "DELETE", path: pods + "/x?resourceVersion=999", code: 409, kind: "Pod"},
		{method: "DELETE", path: pods + "?timeoutSeconds=x", code: 400},
		{
			method: "DELETE", path: pods + "?sendInitialEvents=true", code: 422, kind: "ListOptions",
			causes: []string{"sendInitialEvents"},
		},
		{
			method: "DELETE", path: pods + "?resourceVersionMatch=Exact", code: 422, kind: "ListOptions",
			causes: []string{"resourceVersionMatch"},
		},
		{
			method: "DELETE", path: pods, body: `{"propagationPolicy":"Bad"}`, code: 422, kind: "DeleteOptions",
			causes: []string{"propagationPolicy"},
		},
	} {
		c.check(t, a)
	}
}

func TestBodyOfDeleteReplacesQuery(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("x"))
	for _, query := range []string{"dryRun=All", "dryRun=", "dryRun=None"} {
		a.want(t, 200, "DELETE", pods+"/x?"+query, `{}`)
		a.want(t, 200, "GET", pods+"/x", "")
	}
	a.want(t, 200, "DELETE", pods+"/x?propagationPolicy=Bad&uid=other&gracePeriodSeconds=x", `{}`)
	a.wantError(t, 404, "NotFound", "GET", pods+"/x", "")
}

func TestDeleteOfCollectionHasPages(t *testing.T) {
	a := startServer(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		a.want(t, 201, "POST", pods, object(name))
	}
	var page struct {
		Metadata struct{ Continue string }
		Items    []json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.want(t, 200, "DELETE", pods+"?limit=1", "")), &page); err != nil ||
		len(page.Items) != 1 {
		t.Fatalf("got %+v, %v, want the first object", page, err)
	}
	a.wantError(t, 404, "NotFound", "GET", pods+"/a", "")
	a.want(t, 200, "DELETE", pods+"?limit=1&continue="+page.Metadata.Continue, "")
	a.wantError(t, 404, "NotFound", "GET", pods+"/b", "")
	a.wantError(t, 422, "Invalid", "DELETE", pods+"?ignoreStoreReadErrorWithClusterBreakingPotential=true", "")
	a.want(t, 200, "DELETE", pods+"?limit=-1", "")
	a.wantError(t, 404, "NotFound", "GET", pods+"/c", "")
}

func TestWatchParameterNeedsList(t *testing.T) {
	a := startServer(t, nil)
	want := a.want(t, 201, "POST", pods, object("x"))
	for _, query := range []string{"watch", "watch=1", "watch=maybe"} {
		if got := a.want(t, 200, "GET", pods+"/x?"+query, ""); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	a.want(t, 200, "DELETE", pods+"?watch=true", "")
	a.wantError(t, 404, "NotFound", "GET", pods+"/x", "")
}

func TestFieldNamespaceDependsOnTheKind(t *testing.T) {
	const roles, namespaces = "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/api/v1/namespaces"
	a := startServer(t, func(h *Handler) {
		r, err := ParseResource("clusterroles.v1.rbac.authorization.k8s.io=ClusterRole,cluster")
		if err != nil {
			t.Fatal(err)
		}
		c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
		if err == nil {
			err = h.Add(r, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	for _, path := range []string{gadgets, namespaces} {
		a.want(t, 201, "POST", path, object("x"))
		for _, query := range []string{"", "&watch=1"} {
			a.wantError(t, 400, "BadRequest", "GET", path+"?fieldSelector=metadata.namespace!%3Da"+query, "")
		}
		a.wantError(t, 400, "BadRequest", "DELETE", path+"?fieldSelector=metadata.name%3Dx,metadata.namespace%3D", "")
		a.want(t, 200, "GET", path+"/x", "")
	}
	a.want(t, 201, "POST", roles, object("x"))
	for selector, selected := range map[string]bool{"%3D": true, "!%3Da": true, "%3Da": false} {
		list := a.want(t, 200, "GET", roles+"?fieldSelector=metadata.namespace"+selector, "")
		if got := strings.Contains(list, `"name":"x"`); got != selected {
			t.Errorf("metadata.namespace%s: got %s, want the object: %t", selector, list, selected)
		}
	}
}

func TestDeleteOfFinalizedObjectIsAccepted(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, `{"metadata":{"name":"x","finalizers":["example.com/a"]}}`)
	if got := a.want(t, 202, "DELETE", pods+"/x", `{"orphanDependents":false}`); metadata(t,
		got).DeletionTimestamp.IsZero() {
		t.Errorf("got %s, want the marked object", got)
	}
	a.want(t, 200, "DELETE", pods+"/x", `{"orphanDependents":true}`)
}

func TestUnacceptableAcceptIsRejected(t *testing.T) {
	a := startServer(t, nil)
	a.wantError(t, 406, "NotAcceptable", "GET", pods, "", "Accept", "garbage")
	a.wantError(t, 406, "NotAcceptable", "POST", pods, object("x"), "Accept", "garbage")
	a.wantError(t, 404, "NotFound", "GET", pods+"/x", "")
}

func TestListOptionsAreReadLikeKubernetes(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", pods, object("x"))
	for _, query := range []string{
		"pretty=yes", "limit=99999999999", "limit=%2B1", "limit=-1",
		"timeoutSeconds=99999999999", "timeoutSeconds=%2B1",
	} {
		if got := a.want(t, 200, "GET", pods+"?"+query, ""); !strings.Contains(got, `"x"`) {
			t.Errorf("%s: got %s, want the list", query, got)
		}
	}
	for _, query := range []string{"limit=x", "timeoutSeconds=-1", "timeoutSeconds=9223372036854775808"} {
		a.wantError(t, 400, "BadRequest", "GET", pods+"?"+query, "")
	}
}
