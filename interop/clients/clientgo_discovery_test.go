package clients

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

var declaredResources = []string{widgetResource, "clusterwidgets.v1beta1.demo.example.com=ClusterWidget,cluster"}

func TestDiscoveryFindsEveryResource(t *testing.T) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		s := testapi.Start(t, declaredResources...)
		var recorder requestRecorder
		client := testkit.Must(discovery.NewDiscoveryClientForConfig(recorder.record(s.Config(p))))(t)
		_, aggregated, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(recorder.requests("")); n != 2 {
			t.Errorf("got %d requests, want one each to /api and /apis: discovery is not aggregated", n)
		}
		legacy := testkit.Must(discovery.NewDiscoveryClientForConfig(s.Config(p)))(t)
		legacy.UseLegacyDiscovery = true
		_, single, err := legacy.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		// client-go converts the aggregated form to the unaggregated one and fills in defaults, so
		// the comparison ignores some fields and the order.
		converted := cmp.Options{
			cmpopts.IgnoreFields(metav1.APIResource{}, "Group", "Version", "SingularName"),
			cmpopts.IgnoreFields(metav1.APIResourceList{}, "TypeMeta"),
			cmpopts.SortSlices(func(a, b *metav1.APIResourceList) bool { return a.GroupVersion < b.GroupVersion }),
			cmpopts.SortSlices(func(a, b metav1.APIResource) bool { return a.Name < b.Name }),
		}
		if diff := cmp.Diff(single, aggregated, converted); diff != "" {
			t.Errorf("the two forms of discovery differ (-unaggregated +aggregated):\n%s", diff)
		}

		var got []string
		// The server always serves these two resources.
		want := []string{
			"authorization.k8s.io/v1 selfsubjectaccessreviews",
			"authorization.k8s.io/v1 selfsubjectrulesreviews",
		}
		for _, list := range testkit.Must(discovery.ServerPreferredResources(client))(t) {
			for _, r := range list.APIResources {
				got = append(got, list.GroupVersion+" "+r.Name)
			}
		}
		for _, r := range s.API.Resources() {
			want = append(want, r.APIVersion()+" "+r.Plural)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("preferred resources (-want +got):\n%s", diff)
		}
		if v, err := client.ServerVersion(); err != nil || v.Major == "" || v.GitVersion == "" {
			t.Errorf("got version %+v, error %v, want a complete version", v, err)
		}
	})
}

func TestRESTMapperKnowsAllNames(t *testing.T) {
	s := testapi.Start(t, declaredResources...)
	client := testkit.Must(discovery.NewDiscoveryClientForConfig(s.Config(testapi.HTTP1)))(t)
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	for _, want := range []struct{ resource, kind, scope string }{
		{"pods", "/v1, Kind=Pod", "namespace"},
		{"po", "/v1, Kind=Pod", "namespace"},
		{"pod", "/v1, Kind=Pod", "namespace"},
		{"deploy", "apps/v1, Kind=Deployment", "namespace"},
		{"ns", "/v1, Kind=Namespace", "root"},
		{"widget", "demo.example.com/v1, Kind=Widget", "namespace"},
		{"clusterwidgets", "demo.example.com/v1beta1, Kind=ClusterWidget", "root"},
	} {
		kind := testkit.Must(mapper.KindFor(schema.GroupVersionResource{Resource: want.resource}))(t)
		if kind.String() != want.kind {
			t.Errorf("%s is %s, want %s", want.resource, kind, want.kind)
			continue
		}
		mapping := testkit.Must(mapper.RESTMapping(kind.GroupKind(), kind.Version))(t)
		if string(mapping.Scope.Name()) != want.scope {
			t.Errorf("%s has scope %s, want %s", kind, mapping.Scope.Name(), want.scope)
		}
	}
}
