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
	ofWeb       = deployments + "/web/scale"
)

// web is a deployment of two that there are one of.
const web = `{"metadata":{"name":"web"},"spec":{"odd":1e400,"replicas":2,"selector":{"matchLabels":{"app":"web"},` +
	`"matchExpressions":[{"key":"tier","operator":"In","values":["a","b"]}]}},"status":{"replicas":1}}`

// scaled is what a test looks at of a Scale.
type scaled struct {
	Kind, APIVersion string
	Metadata         listwatch.Metadata
	Spec             struct{ Replicas int32 }
	Status           struct {
		Replicas int32
		Selector string
	}
}

func readScaled(t *testing.T, data string) (s scaled) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if s.Kind != "Scale" || s.APIVersion != "autoscaling/v1" {
		t.Fatalf("got %s, want a Scale", data)
	}
	return s
}

func TestAScaleShowsWhatIsWantedAndWhatThereIs(t *testing.T) {
	a := serve(t, nil)
	m := metadata(t, a.want(t, 201, "POST", deployments, web))
	s := readScaled(t, a.want(t, 200, "GET", ofWeb, ""))
	if s.Spec.Replicas != 2 || s.Status.Replicas != 1 || s.Status.Selector != "app=web,tier in (a,b)" {
		t.Errorf("got %+v, want 2, 1 and the selector of %s", s, web)
	}
	if s.Metadata.Name != "web" || s.Metadata.UID != m.UID || s.Metadata.ResourceVersion != m.ResourceVersion || s.Metadata.Namespace != "default" {
		t.Errorf("got %+v, want the identity of the deployment: %+v", s.Metadata, m)
	}
	a.want(t, 201, "POST", deployments, object("bare"))
	if s := readScaled(t, a.want(t, 200, "GET", deployments+"/bare/scale", "")); s.Spec.Replicas != 1 {
		t.Errorf("got %d replicas of a deployment that names none, want 1 as in Kubernetes", s.Spec.Replicas)
	}
	rows := a.want(t, 200, "GET", ofWeb, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if !strings.Contains(rows, `"cells":["web",2,1,`) {
		t.Errorf("got %s, want a row with the replicas", rows)
	}
}

func TestAScaleChangesTheWantedReplicasAlone(t *testing.T) {
	a := serve(t, nil)
	before := metadata(t, a.want(t, 201, "POST", deployments, web))
	const put = `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web","labels":{"a":"b"}},"spec":{"replicas":5},"status":{"replicas":9}}`
	if s := readScaled(t, a.want(t, 200, "PUT", ofWeb, put)); s.Spec.Replicas != 5 || s.Status.Replicas != 1 {
		t.Errorf("got %+v, want 5 wanted and still 1 there", s)
	}
	o := a.want(t, 200, "GET", deployments+"/web", "")
	after := metadata(t, o)
	if after.Generation != before.Generation+1 || len(after.Labels) > 0 {
		t.Errorf("got %+v, want the next generation and no labels", after)
	}
	if !strings.Contains(o, `"spec":{"odd":1e400,"replicas":5,"selector"`) || !strings.Contains(o, `"status":{"replicas":1}`) {
		t.Errorf("got %s, want all but the replicas as it was written", o)
	}

	again := readScaled(t, a.want(t, 200, "PUT", ofWeb, put))
	if again.Metadata.ResourceVersion != after.ResourceVersion {
		t.Errorf("got version %s of a change that changes nothing, want %s", again.Metadata.ResourceVersion, after.ResourceVersion)
	}
	patches := map[string]string{
		"application/merge-patch+json": `{"spec":{"replicas":7}}`,
		"application/json-patch+json":  `[{"op":"test","path":"/spec/replicas","value":7},{"op":"replace","path":"/spec/replicas","value":8}]`,
	}
	for i, mediaType := range []string{"application/merge-patch+json", "application/json-patch+json"} {
		s := readScaled(t, a.want(t, 200, "PATCH", ofWeb, patches[mediaType], "Content-Type", mediaType))
		if s.Spec.Replicas != int32(7+i) {
			t.Errorf("%s: got %d replicas, want %d", mediaType, s.Spec.Replicas, 7+i)
		}
	}
	dry := readScaled(t, a.want(t, 200, "PATCH", ofWeb+"?dryRun=All", `{"spec":{"replicas":1}}`, "Content-Type", "application/merge-patch+json"))
	kept := readScaled(t, a.want(t, 200, "GET", ofWeb, ""))
	if dry.Spec.Replicas != 1 || kept.Spec.Replicas != 8 {
		t.Errorf("got %d replicas of a dry run and %d after it, want 1 and 8", dry.Spec.Replicas, kept.Spec.Replicas)
	}
}

func TestAScaleIsRefusedAsKubernetesDoes(t *testing.T) {
	a := serve(t, nil)
	a.want(t, 201, "POST", deployments, web)
	a.refused(t, 409, "Conflict", "PUT", ofWeb, `{"metadata":{"name":"web","resourceVersion":"1"},"spec":{"replicas":5}}`)
	a.refused(t, 409, "Conflict", "PATCH", ofWeb, `{"metadata":{"uid":"other"},"spec":{"replicas":5}}`, "Content-Type", "application/merge-patch+json")
	named := func(members string) string { return `{"metadata":{"name":"web"},` + members + `}` }
	negative := a.refused(t, 422, "Invalid", "PUT", ofWeb, `{"metadata":{"name":"web"},"spec":{"replicas":-1}}`)
	if negative.Details == nil || len(negative.Details.Causes) != 1 || negative.Details.Causes[0].Field != "spec.replicas" {
		t.Errorf("got %+v, want spec.replicas as the cause", negative.Details)
	}
	for _, body := range []string{
		``, `[]`, `{}`, `{"spec":{"replicas":5}}`, `{"metadata":{"name":"other"}}`,
		named(`"kind":"Deployment","spec":{"replicas":5}`), named(`"apiVersion":"apps/v1","spec":{"replicas":5}`), named(`"spec":7`),
		named(`"spec":{"replicas":"5"}`), named(`"spec":{"replicas":5.5}`), named(`"spec":{"replicas":4294967296}`),
	} {
		a.refused(t, 400, "BadRequest", "PUT", ofWeb, body)
	}
	a.refused(t, 404, "NotFound", "GET", deployments+"/none/scale", "")
	a.refused(t, 404, "NotFound", "PUT", deployments+"/none/scale", `{"metadata":{"name":"none"},"spec":{"replicas":5}}`)
	a.refused(t, 404, "NotFound", "GET", pods+"/one/scale", "")
	a.refused(t, 405, "MethodNotAllowed", "DELETE", ofWeb, "")
	if s := readScaled(t, a.want(t, 200, "GET", ofWeb, "")); s.Spec.Replicas != 2 {
		t.Errorf("got %d replicas, want 2: all was refused", s.Spec.Replicas)
	}
}

func TestAScaleIsAuthorizedAsASubresource(t *testing.T) {
	var asked []string
	a := serve(t, func(h *Handler) {
		h.Authorize = func(_ context.Context, _ User, at Attributes) error {
			asked = append(asked, at.Verb+" "+at.Resource.Plural+"/"+at.Subresource)
			return nil
		}
	})
	a.want(t, 404, "GET", ofWeb, "")
	a.want(t, 404, "PUT", ofWeb, object("web"))
	if want := []string{"get deployments/scale", "update deployments/scale"}; !slices.Equal(asked, want) {
		t.Errorf("got %q, want %q", asked, want)
	}
}

func TestDiscoveryTellsWhatCanBeScaled(t *testing.T) {
	a := serve(t, nil)
	const want = `{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}`
	if list := a.want(t, 200, "GET", "/apis/apps/v1", ""); !strings.Contains(list, want) {
		t.Errorf("got %s, want %s in it", list, want)
	}
	if list := a.want(t, 200, "GET", "/api/v1", ""); strings.Contains(list, "scale") {
		t.Errorf("got %s, want no scale: pods have none", list)
	}
	const aggregated = `{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]}`
	list := a.want(t, 200, "GET", "/apis", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if !strings.Contains(list, aggregated) {
		t.Errorf("got %s, want %s in it", list, aggregated)
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/apps/v1"} {
		document := a.want(t, 200, "GET", path, "")
		for _, want := range []string{`"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale":`, `"autoscaling.v1.Scale":`} {
			if !strings.Contains(document, want) {
				t.Errorf("%s: got %s, want %s in it", path, document, want)
			}
		}
	}
}

func TestAResourceSaysWhereItsScaleIs(t *testing.T) {
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
	r.Scale = &Scale{SpecReplicasPath: ".spec.fields.count", StatusReplicasPath: ".status.count", LabelSelectorPath: ".status.selector"}
	a := serve(t, func(h *Handler) { addTo(t, h, r) })
	const farms = "/apis/demo.example.com/v1/namespaces/default/farms"
	a.want(t, 201, "POST", farms, `{"metadata":{"name":"one"},"status":{"selector":"a in (b)"}}`)
	if s := readScaled(t, a.want(t, 200, "PUT", farms+"/one/scale", `{"metadata":{"name":"one"},"spec":{"replicas":3}}`)); s.Spec.Replicas != 3 || s.Status.Selector != "a in (b)" {
		t.Errorf("got %+v, want 3 replicas and the selector as it is", s)
	}
	if o := a.want(t, 200, "GET", farms+"/one", ""); !strings.Contains(o, `"spec":{"fields":{"count":3}}`) {
		t.Errorf("got %s, want the replicas where the resource has them", o)
	}
}

// addTo makes h serve r from memory.
func addTo(t *testing.T, h *Handler, r Resource) {
	t.Helper()
	c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
	if err == nil {
		err = h.Add(r, c)
	}
	if err != nil {
		t.Fatal(err)
	}
}
