package kubetest_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	widgets     = schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "widgets"}
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

func (c *cluster) widgets() dynamic.ResourceInterface {
	return c.dynamic.Resource(widgets).Namespace("default")
}

func widget(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "demo.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": spec,
		"status": map[string]any{"replicas": int64(9)},
	}}
}

func TestCustomResourcesArePrunedAndCompleted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		w := testkit.Must(c.widgets().Create(t.Context(), widget(map[string]any{"color": "red", "odd": "x"}),
			metav1.CreateOptions{}))(t)
		want := map[string]any{"color": "red", "replicas": int64(1), "limit": int64(10)}
		if spec := w.Object["spec"].(map[string]any); !maps.Equal(spec, want) || w.Object["status"] != nil {
			t.Errorf("got %v, want the spec %v", w.Object, want)
		}
		w.Object["status"] = map[string]any{"replicas": int64(2), "odd": "x"}
		w = testkit.Must(c.widgets().UpdateStatus(t.Context(), w, metav1.UpdateOptions{}))(t)
		if status := w.Object["status"].(map[string]any); !maps.Equal(status, map[string]any{"replicas": int64(2)}) {
			t.Errorf("got the status %v", status)
		}
		scale := testkit.Must(c.widgets().Get(t.Context(), "w", metav1.GetOptions{}, "scale"))(t)
		if n, _, _ := unstructured.NestedInt64(scale.Object, "status", "replicas"); n != 2 {
			t.Errorf("got the scale %v", scale.Object)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

func TestCustomResourcesAreValidated(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for _, tt := range []struct {
			spec map[string]any
			want string // if empty, the object is valid
		}{
			{map[string]any{}, "spec.color: Required value"},
			{map[string]any{"color": "blue"}, "spec.color: Unsupported value"},
			{map[string]any{"color": "red", "replicas": int64(11)}, "replicas must not exceed the limit"},
			{map[string]any{"color": "red", "size": int64(3)}, ""},
		} {
			_, err := c.widgets().Create(t.Context(), widget(tt.spec), metav1.CreateOptions{})
			if tt.want == "" && err == nil {
				continue
			}
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v: got %v, want %s", tt.spec, err, tt.want)
			}
		}
		w := testkit.Must(c.widgets().Get(t.Context(), "w", metav1.GetOptions{}))(t)
		w.Object["spec"].(map[string]any)["size"] = int64(2)
		if _, err := c.widgets().Update(t.Context(), w, metav1.UpdateOptions{}); err == nil ||
			!strings.Contains(err.Error(), "a widget never shrinks") {
			t.Errorf("a rule about the change: got %v", err)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds/widgets.yaml"}})
}

func TestDefinitionsChangeWhatIsServed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		api := c.dynamic.Resource(definitions)
		definition := testkit.Must(api.Get(t.Context(), "widgets.demo.example.com", metav1.GetOptions{}))(t)
		conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
		if len(conditions) != 2 {
			t.Errorf("got the conditions %v", conditions)
		}
		testkit.Must(c.widgets().Create(t.Context(), widget(map[string]any{"color": "red"}), metav1.CreateOptions{}))(t)
		if err := api.Delete(t.Context(), definition.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := c.widgets().List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after the definition was deleted: got %v", err)
		}
		definition.SetResourceVersion("")
		testkit.Must(api.Create(t.Context(), definition, metav1.CreateOptions{}))(t)
		if all := testkit.Must(c.widgets().List(t.Context(), metav1.ListOptions{}))(t); len(all.Items) != 0 {
			t.Errorf("got %v, want no object of the deleted definition", all.Items)
		}
		_ = unstructured.SetNestedField(definition.Object, "gizmos", "spec", "names", "plural")
		definition.SetName("gizmos.demo.example.com")
		definition.Object["spec"].(map[string]any)["scope"] = "Everywhere"
		if _, err := api.Create(t.Context(), definition, metav1.CreateOptions{}); !apierrors.IsInvalid(err) &&
			!apierrors.IsBadRequest(err) {
			t.Errorf("an invalid definition: got %v", err)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

func TestDefinitionsAreCompleted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		crds := c.dynamic.Resource(definitions)
		d := testkit.Must(crds.Get(t.Context(), "widgets.demo.example.com", metav1.GetOptions{}))(t)
		singular, _, _ := unstructured.NestedString(d.Object, "spec", "names", "singular")
		listKind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "listKind")
		strategy, _, _ := unstructured.NestedString(d.Object, "spec", "conversion", "strategy")
		if singular != "widget" || listKind != "WidgetList" || strategy != "None" {
			t.Errorf("got %v, want the names and the conversion that a definition has by default", d.Object["spec"])
		}
		patch := []byte(`{"spec":{"group":"example.org"}}`)
		_, err := crds.Patch(t.Context(), d.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "field is immutable") {
			t.Errorf("a change of the group: got %v, want an invalid immutable field", err)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

// TestNewestDefinitionIsServed changes a definition concurrently. Without the order of the
// versions, the last write to be reported would determine the schema.
func TestNewestDefinitionIsServed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		all := c.dynamic.Resource(definitions)
		path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "limit", "default"}
		for round := range int64(20) {
			var writers sync.WaitGroup
			for writer := range int64(4) {
				writers.Go(func() {
					patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/%s","value":%d}]`,
						strings.Join(path, "/"), 10+round*4+writer)
					_, err := all.Patch(t.Context(), "widgets.demo.example.com", types.JSONPatchType, []byte(patch),
						metav1.PatchOptions{})
					if err != nil {
						t.Error(err)
					}
				})
			}
			writers.Wait()
			stored := testkit.Must(all.Get(t.Context(), "widgets.demo.example.com", metav1.GetOptions{}))(t)
			versions, _, _ := unstructured.NestedSlice(stored.Object, "spec", "versions")
			want, _, _ := unstructured.NestedInt64(versions[0].(map[string]any), path...)
			w := widget(map[string]any{"color": "red"})
			w.SetName(fmt.Sprint("w-", round))
			w = testkit.Must(c.widgets().Create(t.Context(), w, metav1.CreateOptions{}))(t)
			if got, _, _ := unstructured.NestedInt64(w.Object, "spec", "limit"); got != want {
				t.Fatalf("round %d: got the limit %d by default, want %d as in the definition", round, got, want)
			}
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}
