package kubeapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func kindOf(group, version, kind string) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// getJSON decodes the response to a GET of path.
func getJSON[T any](t *testing.T, a *testServer, path string, header ...string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.want(t, 200, "GET", path, "", header...)), &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

func TestDiscoveryListsGroupsVersionsAndResources(t *testing.T) {
	a := startServer(t, nil)
	if got := a.want(t, 200, "GET", "/api", ""); !strings.Contains(got, `"kind":"APIVersions"`) ||
		!strings.Contains(got, `"versions":["v1"]`) {
		t.Errorf("got %s, want the versions of the core group", got)
	}
	apps := metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"}
	want := metav1.APIGroup{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{apps}, PreferredVersion: apps}
	list := getJSON[struct {
		Kind   string
		Groups []metav1.APIGroup
	}](t, a, "/apis")
	if list.Kind != "APIGroupList" || len(list.Groups) != 3 || !cmp.Equal(list.Groups[0], want) {
		t.Errorf("got %+v, want three groups, the first %+v", list, want)
	}
	want.Kind, want.APIVersion = "APIGroup", "v1"
	if got := getJSON[metav1.APIGroup](t, a, "/apis/apps"); !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	resources := getJSON[struct {
		Kind, GroupVersion string
		Resources          []metav1.APIResource
	}](t, a, "/api/v1")
	pod := metav1.APIResource{
		Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", Verbs: verbs,
		ShortNames: []string{"po"}, Categories: []string{"all"},
	}
	if resources.Kind != "APIResourceList" || resources.GroupVersion != "v1" ||
		!cmp.Equal(resources.Resources[0], pod) {
		t.Errorf("got %+v, want %+v first", resources, pod)
	}
	if got := a.want(t, 200, "GET", "/apis/demo.example.com/v1", ""); !strings.Contains(got,
		`"name":"gadgets","singularName":"gadget","namespaced":false,"kind":"Gadget"`) {
		t.Errorf("got %s, want cluster-scoped gadgets", got)
	}
	a.wantError(t, 405, "MethodNotAllowed", "POST", "/apis/apps", "{}")
	a.wantError(t, 405, "MethodNotAllowed", "POST", "/apis", "{}")
	a.wantError(t, 406, "NotAcceptable", "GET", "/apis/apps", "", "Accept", "application/vnd.kubernetes.protobuf")
}

func TestAggregatedDiscoveryIsNegotiated(t *testing.T) {
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	a := startServer(t, nil)
	type groupList struct {
		Kind, APIVersion string
		Items            []apidiscovery.APIGroupDiscovery
	}
	got := getJSON[groupList](t, a, "/apis", "Accept", aggregated+",application/json")
	if got.Kind != "APIGroupDiscoveryList" || got.APIVersion != "apidiscovery.k8s.io/v2" || len(got.Items) != 3 {
		t.Fatalf("got %+v, want three groups", got)
	}
	v := got.Items[0].Versions[0]
	want := apidiscovery.APIResourceDiscovery{
		Resource: "deployments", ResponseKind: kindOf("apps", "v1", "Deployment"), Scope: "Namespaced",
		SingularResource: "deployment",
		Verbs:            verbs, ShortNames: []string{"deploy"}, Categories: []string{"all"},
		Subresources: v.Resources[0].Subresources,
	}
	if got.Items[0].Name != "apps" || v.Version != "v1" || v.Freshness != "Current" {
		t.Errorf("got %+v, want apps/v1, which is current", got.Items[0])
	}
	if diff := cmp.Diff(want, v.Resources[0]); diff != "" {
		t.Errorf("the resource (-want +got):\n%s", diff)
	}
	core := getJSON[groupList](t, a, "/api", "Accept", aggregated)
	if len(core.Items) != 1 || core.Items[0].Name != "" || core.Items[0].Versions[0].Version != "v1" {
		t.Errorf("got %+v, want the core group", core)
	}
	for accept, want := range map[string]string{
		aggregated + ",application/json": aggregated,
		strings.Replace(aggregated, "v=v2", "v=v2beta1", 1) +
			",application/json": strings.Replace(aggregated, "v=v2", "v=v2beta1", 1),
		strings.Replace(aggregated, "v=v2", "v=v3", 1) + ",application/json":      "application/json",
		"application/json," + aggregated + ";q=0.9":                               "application/json",
		"application/vnd.kubernetes.protobuf," + aggregated + ";q=0.5, */*;q=0.1": aggregated,
		"*/*": "application/json",
	} {
		if got := a.do(t, "GET", "/apis", "", "Accept", accept).Header.Get("Content-Type"); got != want {
			t.Errorf("Accept %s: got %s, want %s", accept, got, want)
		}
	}
	a.wantError(t, 406, "NotAcceptable", "GET", "/api", "", "Accept", "application/yaml")
	a.wantError(t, 406, "NotAcceptable", "GET", "/api", "", "Accept", "application/json;;q")
}

func TestStableVersionIsPreferred(t *testing.T) {
	h := &Handler{}
	for _, v := range []string{"v1alpha1", "v1beta2", "v1", "v2beta1", "v10", "v2", "v1beta10"} {
		if err := h.Add(Resource{Group: "demo", Version: v, Plural: "things", Kind: "Thing"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"v10", "v2", "v1", "v2beta1", "v1beta10", "v1beta2", "v1alpha1"}
	if got := h.versions("demo"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if g, _ := h.group("demo"); g.PreferredVersion.Version != "v10" {
		t.Errorf("got %+v, want v10 preferred", g)
	}
}
