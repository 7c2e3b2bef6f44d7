package kubeapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
)

const (
	deployments = "/apis/apps/v1/namespaces/default/deployments"
	webScale    = deployments + "/web/scale"
)

// webDeployment is a Deployment with two desired replicas and one actual replica.
const webDeployment = `{"metadata":{"name":"web"},"spec":{"odd":18446744073709551616,"replicas":2,"selector":{"matchLabels":{"app":"web"},` +
	`"matchExpressions":[{"key":"tier","operator":"In","values":["a","b"]}]}},"status":{"replicas":1}}`

// scaleResponse contains the members of a Scale that the tests check.
type scaleResponse struct {
	Kind, APIVersion string
	Metadata         listwatch.Metadata
	Spec             struct{ Replicas int32 }
	Status           struct {
		Replicas int32
		Selector string
	}
}

func parseScale(t *testing.T, data string) (s scaleResponse) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if s.Kind != "Scale" || s.APIVersion != "autoscaling/v1" {
		t.Fatalf("got %s, want a Scale", data)
	}
	return s
}

func TestScaleShowsReplicasAndSelector(t *testing.T) {
	a := startServer(t, nil)
	m := metadata(t, a.want(t, 201, "POST", deployments, webDeployment))
	s := parseScale(t, a.want(t, 200, "GET", webScale, ""))
	if s.Spec.Replicas != 2 || s.Status.Replicas != 1 || s.Status.Selector != "app=web,tier in (a,b)" {
		t.Errorf("got %+v, want 2, 1 and the selector of %s", s, webDeployment)
	}
	if s.Metadata.Name != "web" || s.Metadata.UID != m.UID || s.Metadata.ResourceVersion != m.ResourceVersion ||
		s.Metadata.Namespace != "default" {
		t.Errorf("got %+v, want the identity of the deployment: %+v", s.Metadata, m)
	}
	a.want(t, 201, "POST", deployments, object("bare"))
	if s := parseScale(t, a.want(t, 200, "GET", deployments+"/bare/scale", "")); s.Spec.Replicas != 1 {
		t.Errorf("got %d replicas for a deployment that specifies none, want 1 as in Kubernetes", s.Spec.Replicas)
	}
	rows := a.want(t, 200, "GET", webScale, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if !strings.Contains(rows, `"cells":["web",2,1,`) {
		t.Errorf("got %s, want a row with the replicas", rows)
	}
}

func TestScaleUpdateChangesOnlyReplicas(t *testing.T) {
	a := startServer(t, nil)
	before := metadata(t, a.want(t, 201, "POST", deployments, webDeployment))
	const put = `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web","labels":{"a":"b"}},"spec":{"replicas":5},"status":{"replicas":9}}`
	if s := parseScale(t, a.want(t, 200, "PUT", webScale, put)); s.Spec.Replicas != 5 || s.Status.Replicas != 1 {
		t.Errorf("got %+v, want 5 desired and 1 actual", s)
	}
	o := a.want(t, 200, "GET", deployments+"/web", "")
	after := metadata(t, o)
	if after.Generation != before.Generation+1 || len(after.Labels) > 0 {
		t.Errorf("got %+v, want the next generation and no labels", after)
	}
	if !strings.Contains(o, `"spec":{"odd":18446744073709551616,"replicas":5,"selector"`) ||
		!strings.Contains(o, `"status":{"replicas":1}`) {
		t.Errorf("got %s, want everything but the replicas unchanged", o)
	}

	again := parseScale(t, a.want(t, 200, "PUT", webScale, put))
	if again.Metadata.ResourceVersion != after.ResourceVersion {
		t.Errorf("an update without changes returned version %s, want %s", again.Metadata.ResourceVersion,
			after.ResourceVersion)
	}
	patches := map[string]string{
		"application/merge-patch+json": `{"spec":{"replicas":7}}`,
		"application/json-patch+json":  `[{"op":"test","path":"/spec/replicas","value":7},{"op":"replace","path":"/spec/replicas","value":8}]`,
	}
	for i, mediaType := range []string{"application/merge-patch+json", "application/json-patch+json"} {
		s := parseScale(t, a.want(t, 200, "PATCH", webScale, patches[mediaType], "Content-Type", mediaType))
		if s.Spec.Replicas != int32(7+i) {
			t.Errorf("%s: got %d replicas, want %d", mediaType, s.Spec.Replicas, 7+i)
		}
	}
	dry := parseScale(t,
		a.want(t, 200, "PATCH", webScale+"?dryRun=All", `{"spec":{"replicas":1}}`, "Content-Type",
			"application/merge-patch+json"))
	kept := parseScale(t, a.want(t, 200, "GET", webScale, ""))
	if dry.Spec.Replicas != 1 || kept.Spec.Replicas != 8 {
		t.Errorf("got %d replicas in the dry run and %d after it, want 1 and 8", dry.Spec.Replicas, kept.Spec.Replicas)
	}
}

func TestInvalidScalesFailAsInKubernetes(t *testing.T) {
	a := startServer(t, nil)
	a.want(t, 201, "POST", deployments, webDeployment)
	a.wantError(t, 409, "Conflict", "PUT", webScale,
		`{"metadata":{"name":"web","resourceVersion":"1"},"spec":{"replicas":5}}`)
	a.wantError(t, 409, "Conflict", "PUT", webScale, `{"metadata":{"name":"web","uid":"other"},"spec":{"replicas":5}}`)
	named := func(members string) string { return `{"metadata":{"name":"web"},` + members + `}` }
	negative := a.wantError(t, 422, "Invalid", "PUT", webScale, `{"metadata":{"name":"web"},"spec":{"replicas":-1}}`)
	if negative.Details == nil || len(negative.Details.Causes) != 1 ||
		negative.Details.Causes[0].Field != "spec.replicas" {
		t.Errorf("got %+v, want spec.replicas as the cause", negative.Details)
	}
	for _, body := range []string{
		``, `[]`, `{}`, `{"spec":{"replicas":5}}`, `{"metadata":{"name":"other"}}`,
		named(`"kind":"Deployment","spec":{"replicas":5}`), named(`"apiVersion":"apps/v1","spec":{"replicas":5}`),
		named(`"spec":7`),
		named(`"spec":{"replicas":"5"}`), named(`"spec":{"replicas":5.5}`), named(`"spec":{"replicas":4294967296}`),
	} {
		a.wantError(t, 400, "BadRequest", "PUT", webScale, body)
	}
	a.wantError(t, 404, "NotFound", "GET", deployments+"/none/scale", "")
	a.wantError(t, 404, "NotFound", "PUT", deployments+"/none/scale",
		`{"metadata":{"name":"none"},"spec":{"replicas":5}}`)
	a.wantError(t, 404, "NotFound", "GET", pods+"/one/scale", "")
	a.wantError(t, 405, "MethodNotAllowed", "DELETE", webScale, "")
	if s := parseScale(t, a.want(t, 200, "GET", webScale, "")); s.Spec.Replicas != 2 {
		t.Errorf("got %d replicas, want 2, because every write was rejected", s.Spec.Replicas)
	}
}

func TestScaleIsAuthorizedAsSubresource(t *testing.T) {
	var requests []string
	a := startServer(t, func(h *Handler) {
		h.Authorize = func(_ context.Context, _ User, at Attributes) error {
			requests = append(requests, at.Verb+" "+at.Resource.Plural+"/"+at.Subresource)
			return nil
		}
	})
	a.want(t, 404, "GET", webScale, "")
	a.want(t, 404, "PUT", webScale, object("web"))
	if want := []string{"get deployments/scale", "update deployments/scale"}; !slices.Equal(requests, want) {
		t.Errorf("got %q, want %q", requests, want)
	}
}

func TestDiscoveryListsScale(t *testing.T) {
	a := startServer(t, nil)
	const want = `{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}`
	if list := a.want(t, 200, "GET", "/apis/apps/v1", ""); !strings.Contains(list, want) {
		t.Errorf("got %s, want it to contain %s", list, want)
	}
	if list := a.want(t, 200, "GET", "/api/v1", ""); strings.Contains(list, "scale") {
		t.Errorf("got %s, want no scale for the core group", list)
	}
	const aggregated = `{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]}`
	list := a.want(t, 200, "GET", "/apis", "", "Accept",
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if !strings.Contains(list, aggregated) {
		t.Errorf("got %s, want it to contain %s", list, aggregated)
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/apps/v1"} {
		document := a.want(t, 200, "GET", path, "")
		for _, want := range []string{
			`"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale":`,
			`"autoscaling.v1.Scale":`,
		} {
			if !strings.Contains(document, want) {
				t.Errorf("%s: got %s, want it to contain %s", path, document, want)
			}
		}
	}
}

func TestScalePathsAreConfigurable(t *testing.T) {
	r := Resource{Group: "demo.example.com", Version: "v1", Plural: "farms", Kind: "Farm", Namespaced: true}
	for _, s := range []Scale{
		{},
		{SpecReplicasPath: ".spec.replicas"},
		{SpecReplicasPath: "spec.replicas", StatusReplicasPath: ".status.replicas"},
		{SpecReplicasPath: ".spec.sizes[0]", StatusReplicasPath: ".status.replicas"},
		{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: ".status[*]"},
	} {
		r.Scale = &s
		if err := new(Handler).Add(r, nil); listwatch.CodeOf(err) != listwatch.Invalid {
			t.Errorf("%+v: got %v, want an error of code Invalid", s, err)
		}
	}
	r.Scale = &Scale{
		SpecReplicasPath: ".spec.fields.count", StatusReplicasPath: ".status.count",
		LabelSelectorPath: ".status.selector",
	}
	a := startServer(t, func(h *Handler) { addMemoryResource(t, h, r) })
	const farms = "/apis/demo.example.com/v1/namespaces/default/farms"
	a.want(t, 201, "POST", farms, `{"metadata":{"name":"one"},"status":{"selector":"a in (b)"}}`)
	if s := parseScale(t,
		a.want(t, 200, "PUT", farms+"/one/scale",
			`{"metadata":{"name":"one"},"spec":{"replicas":3}}`)); s.Spec.Replicas != 3 ||
		s.Status.Selector != "a in (b)" {
		t.Errorf("got %+v, want 3 replicas and the unchanged selector", s)
	}
	if o := a.want(t, 200, "GET", farms+"/one", ""); !strings.Contains(o, `"spec":{"fields":{"count":3}}`) {
		t.Errorf("got %s, want the replicas at the configured path", o)
	}
}

// addMemoryResource makes h serve r from a new memory store.
func addMemoryResource(t *testing.T, h *Handler, r Resource) {
	t.Helper()
	c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
	if err == nil {
		err = h.Add(r, c)
	}
	if err != nil {
		t.Fatal(err)
	}
}
