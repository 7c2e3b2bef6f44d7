package clients

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// widgetResource declares the resource widgets for testapi.Start.
const widgetResource = "widgets.v1.demo.example.com=Widget"

var (
	widgetGVR    = schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "widgets"}
	configMapGVR = corev1.SchemeGroupVersion.WithResource("configmaps")
)

func unstructuredWidget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "demo.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app": "demo"}},
		"spec":     map[string]any{"size": size, "ratio": 0.5, "big": int64(1<<53 + 1), "tags": []any{"a", "<&>"}},
	}}
}

func TestDynamicClientUsesDeclaredKinds(t *testing.T) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		s := testapi.Start(t, widgetResource)
		c := testkit.Must(dynamic.NewForConfig(s.Config(p)))(t).Resource(widgetGVR).Namespace("default")
		ctx := t.Context()
		w := testkit.Must(c.Watch(ctx, metav1.ListOptions{}))(t)
		defer w.Stop()
		created := testkit.Must(c.Create(ctx, unstructuredWidget("a", 1), metav1.CreateOptions{}))(t)
		if diff := cmp.Diff(unstructuredWidget("a", 1).Object["spec"], created.Object["spec"]); diff != "" {
			t.Errorf("the created spec differs (-sent +received):\n%s", diff)
		}
		if err := unstructured.SetNestedField(created.Object, int64(2), "spec", "size"); err != nil {
			t.Fatal(err)
		}
		updated := testkit.Must(c.Update(ctx, created, metav1.UpdateOptions{}))(t)
		updated.Object["status"] = map[string]any{"ready": true}
		ready := testkit.Must(c.UpdateStatus(ctx, updated, metav1.UpdateOptions{}))(t)
		patched := testkit.Must(c.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":3,"ratio":null}}`),
			metav1.PatchOptions{}))(t)
		if size, _, _ := unstructured.NestedInt64(patched.Object, "spec", "size"); size != 3 ||
			patched.GetGeneration() != 3 {
			t.Errorf("got size %d at generation %d, want 3 at 3", size, patched.GetGeneration())
		}
		list := testkit.Must(c.List(ctx, metav1.ListOptions{LabelSelector: "app=demo"}))(t)
		if list.GetKind() != "WidgetList" || len(list.Items) != 1 {
			t.Errorf("got %d items of kind %s, want 1 of kind WidgetList", len(list.Items), list.GetKind())
		}
		if diff := cmp.Diff(patched, &list.Items[0]); diff != "" {
			t.Errorf("the listed object differs (-patched +listed):\n%s", diff)
		}
		if err := c.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		for i, want := range []struct {
			kind watch.EventType
			size int64
			from *unstructured.Unstructured // has the expected version; nil allows any version
		}{
			{watch.Added, 1, nil},
			{watch.Modified, 2, updated},
			{watch.Modified, 2, ready},
			{watch.Modified, 3, patched},
			{watch.Deleted, 3, nil},
		} {
			e := <-w.ResultChan()
			o, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type != want.kind {
				t.Fatalf("event %d is %v, want %s", i, e, want.kind)
			}
			if size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size"); size != want.size {
				t.Errorf("event %d has size %d, want %d", i, size, want.size)
			}
			if want.from != nil && o.GetResourceVersion() != want.from.GetResourceVersion() {
				t.Errorf("event %d has version %s, want %s", i, o.GetResourceVersion(), want.from.GetResourceVersion())
			}
		}
	})
}

func TestServerSideAppliesOfTwoManagersConflict(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := testkit.Must(dynamic.NewForConfig(s.Config(testapi.HTTP1)))(t).Resource(widgetGVR).Namespace("default")
	testkit.Must(c.Apply(t.Context(), "a", unstructuredWidget("a", 1), metav1.ApplyOptions{FieldManager: "one"}))(t)
	_, err := c.Apply(t.Context(), "a", unstructuredWidget("a", 2), metav1.ApplyOptions{FieldManager: "two"})
	wantError(t, err, "Conflict")
	forced := testkit.Must(c.Apply(t.Context(), "a", unstructuredWidget("a", 2),
		metav1.ApplyOptions{FieldManager: "two", Force: true}))(t)
	if size, _, _ := unstructured.NestedInt64(forced.Object, "spec", "size"); size != 2 ||
		len(forced.GetManagedFields()) != 2 {
		t.Errorf("got %v, want size 2 and two managers", forced)
	}
}

// The metadata client receives only the metadata of objects, in lists and in watches.
func TestMetadataClientSeesMetadataOnly(t *testing.T) {
	forEachProtocol(t, func(t *testing.T, p testapi.Protocol) {
		s := testapi.Start(t, widgetResource)
		maps := newClientset(t, s.Config(p)).CoreV1().ConfigMaps("default")
		ctx := t.Context()
		first := testkit.Must(maps.Create(ctx,
			configMap("a", map[string]string{"k": "v"}, map[string]string{"secret": "s"}), metav1.CreateOptions{}))(t)

		c := testkit.Must(metadata.NewForConfig(s.Config(p)))(t).Resource(configMapGVR).Namespace("default")
		list := testkit.Must(c.List(ctx, metav1.ListOptions{}))(t)
		if len(list.Items) != 1 {
			t.Fatalf("the list has %d items, want 1", len(list.Items))
		}
		wantMetadata(t, &list.Items[0], first)
		wantMetadata(t, testkit.Must(c.Get(ctx, "a", metav1.GetOptions{}))(t), first)

		w := testkit.Must(c.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))(t)
		defer w.Stop()
		second := testkit.Must(maps.Create(ctx, configMap("b", nil, map[string]string{"secret": "s"}),
			metav1.CreateOptions{}))(t)
		wantMetadata(t, (<-w.ResultChan()).Object.(*metav1.PartialObjectMetadata), second)
		patched := testkit.Must(c.Patch(ctx, "b", types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"k":"v"}}}`), metav1.PatchOptions{}))(t)
		if patched.Annotations["k"] != "v" {
			t.Errorf("got annotations %v after the patch, want k=v", patched.Annotations)
		}
		if err := c.Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		for _, want := range []watch.EventType{watch.Modified, watch.Deleted} {
			if e := <-w.ResultChan(); e.Type != want || e.Object.(*metav1.PartialObjectMetadata).Name != "b" {
				t.Errorf("got %v, want %s of b", e, want)
			}
		}
		if err := c.DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "k=v"}); err != nil {
			t.Error(err)
		}
		if _, err := c.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get after the collection was deleted: got %v, want NotFound", err)
		}
	})
}

func wantMetadata(t *testing.T, got *metav1.PartialObjectMetadata, want *corev1.ConfigMap) {
	t.Helper()
	if diff := cmp.Diff(want.ObjectMeta, got.ObjectMeta); diff != "" {
		t.Errorf("the metadata of %s differs (-object +metadata client):\n%s", want.Name, diff)
	}
}
