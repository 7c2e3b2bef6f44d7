package clients

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/testapi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podOnNode returns a pod that is assigned to a node.
func podOnNode(namespace, name, app, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/main:1"}},
		},
	}
}

// waitForPods waits until a list returns exactly the pods in want. want contains sorted names such
// as "ns/name", separated by spaces.
func waitForPods(t *testing.T, r client.Reader, want string, opts ...client.ListOption) {
	t.Helper()
	var got string
	defer func() {
		if t.Failed() {
			t.Logf("got %q, want %q", got, want)
		}
	}()
	eventually(t, "list of "+want, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := r.List(ctx, &pods, opts...)
		names := map[string]bool{}
		for _, p := range pods.Items {
			names[p.Namespace+"/"+p.Name] = true
		}
		got = strings.Join(slices.Sorted(maps.Keys(names)), " ")
		return got == want, err
	})
}

func TestCacheFindsObjectsByIndex(t *testing.T) {
	s := testapi.Start(t)
	c := newControllerClient(t, s)
	createObjects(t, c, podOnNode("a", "one", "web", "n1"), podOnNode("b", "two", "web", "n2"),
		podOnNode("b", "three", "db", "n1"))
	cached := startCache(t, s, cache.Options{}, func(cached cache.Cache) {
		node := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
		if err := cached.IndexField(t.Context(), &corev1.Pod{}, "spec.nodeName", node); err != nil {
			t.Fatal(err)
		}
	})
	waitForPods(t, cached, "a/one b/three", client.MatchingFields{"spec.nodeName": "n1"})
	waitForPods(t, cached, "b/three", client.MatchingFields{"spec.nodeName": "n1"}, client.InNamespace("b"))

	pod := podOnNode("b", "two", "web", "n1")
	if err := c.Patch(t.Context(), pod,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"nodeName":"n1"}}`))); err != nil {
		t.Fatal(err)
	}
	waitForPods(t, cached, "a/one b/three b/two", client.MatchingFields{"spec.nodeName": "n1"})
	waitForPods(t, cached, "", client.MatchingFields{"spec.nodeName": "n2"})
	if err := c.Delete(t.Context(), podOnNode("a", "one", "", "")); err != nil {
		t.Fatal(err)
	}
	waitForPods(t, cached, "b/three b/two", client.MatchingFields{"spec.nodeName": "n1"})
}

func TestCacheHoldsSelectedObjects(t *testing.T) {
	s := testapi.Start(t)
	c := newControllerClient(t, s)
	createObjects(t, c, podOnNode("a", "one", "web", "n1"), podOnNode("a", "two", "db", "n1"),
		podOnNode("b", "three", "web", "n2"))
	cached := startCache(t, s, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: {
			Label: labels.SelectorFromSet(labels.Set{"app": "web"}),
			Field: fields.OneTermEqualSelector("spec.nodeName", "n1"),
		},
	}}, nil)
	waitForPods(t, cached, "a/one")

	relabel := func(namespace, name, patch string) {
		t.Helper()
		if err := c.Patch(t.Context(), podOnNode(namespace, name, "", ""),
			client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	relabel("a", "two", `{"metadata":{"labels":{"app":"web"}}}`) // enters by its label
	relabel("b", "three", `{"spec":{"nodeName":"n1"}}`)          // enters by its field
	waitForPods(t, cached, "a/one a/two b/three")
	relabel("a", "one", `{"metadata":{"labels":{"app":null}}}`) // leaves by its label
	waitForPods(t, cached, "a/two b/three")
	err := cached.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "one"}, &corev1.Pod{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get of a pod that left the selection: got %v, want NotFound", err)
	}
}

func TestCacheHasASelectorPerNamespace(t *testing.T) {
	s := testapi.Start(t)
	c := newControllerClient(t, s)
	for _, namespace := range []string{"a", "b", "c"} {
		createObjects(t, c, podOnNode(namespace, "one", "web", "n1"), podOnNode(namespace, "two", "db", "n1"))
	}
	cached := startCache(t, s, cache.Options{DefaultNamespaces: map[string]cache.Config{
		"a": {},
		"b": {LabelSelector: labels.SelectorFromSet(labels.Set{"app": "db"})},
	}}, nil)
	waitForPods(t, cached, "a/one a/two b/two")
	createObjects(t, c, podOnNode("b", "three", "db", "n2"), podOnNode("c", "three", "db", "n2"))
	waitForPods(t, cached, "a/one a/two b/three b/two")
}

func TestCacheReadsUnstructuredObjects(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	createObjects(t, c, newWidget("w", "first"))
	cached := startCache(t, s, cache.Options{}, nil)
	u := new(unstructured.Unstructured)
	u.SetGroupVersionKind(widgetVersion.WithKind("Widget"))
	waitForText := func(want string) {
		t.Helper()
		eventually(t, "text "+want, func(ctx context.Context) (bool, error) {
			err := cached.Get(ctx, client.ObjectKey{Namespace: "default", Name: "w"}, u)
			got, _, _ := unstructured.NestedString(u.Object, "spec", "text")
			return got == want, err
		})
	}
	waitForText("first")
	w := newWidget("w", "second")
	if err := c.Patch(t.Context(), w,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"text":"second"}}`))); err != nil {
		t.Fatal(err)
	}
	waitForText("second")
}

func TestCacheReadsMetadataOnly(t *testing.T) {
	s := testapi.Start(t, widgetResource)
	c := newControllerClient(t, s)
	createObjects(t, c, newWidget("w", "first"))
	cached := startCache(t, s, cache.Options{}, nil)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(widgetVersion.WithKind("WidgetList"))
	waitForCount := func(annotation string, want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d objects with annotation a=%q", want, annotation),
			func(ctx context.Context) (bool, error) {
				err := cached.List(ctx, list)
				n := 0
				for _, item := range list.Items {
					if item.Annotations["a"] == annotation && item.Kind == "Widget" && item.UID != "" &&
						item.ResourceVersion != "" {
						n++
					}
				}
				return n == want, err
			})
	}
	waitForCount("", 1)
	createObjects(t, c, newWidget("x", "other"))
	waitForCount("", 2)
	// A client can also write only the metadata.
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w"}}
	meta.SetGroupVersionKind(widgetVersion.WithKind("Widget"))
	if err := c.Patch(t.Context(), meta,
		client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"a":"yes"}}}`))); err != nil {
		t.Fatal(err)
	}
	waitForCount("yes", 1)
	w := new(Widget)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "w"}, w); err != nil ||
		w.Spec.Text != "first" {
		t.Errorf("after a patch of the metadata: got %+v, %v, want the text %q", w, err, "first")
	}
}
