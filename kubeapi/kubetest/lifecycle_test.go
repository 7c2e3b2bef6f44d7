package kubetest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

const widgetsDefinition = "widgets.demo.example.com"

func (c *cluster) definitions() dynamic.ResourceInterface { return c.dynamic.Resource(definitions) }

func (c *cluster) definition(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return testkit.Must(c.definitions().Get(t.Context(), name, metav1.GetOptions{}))(t)
}

func (c *cluster) deleteDefinition(t *testing.T, name string) {
	t.Helper()
	if err := c.definitions().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// condition returns the status and the reason of a condition of a definition.
func condition(definition *unstructured.Unstructured, kind string) string {
	all, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range all {
		if c := c.(map[string]any); c["type"] == kind {
			return fmt.Sprint(c["status"], " ", c["reason"])
		}
	}
	return ""
}

// ended reads the events of a watch until it ends, and reports whether it has ended.
func ended(w watch.Interface) (ended bool, events []watch.Event) {
	synctest.Wait()
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return true, events
			}
			events = append(events, e)
		default:
			return false, events
		}
	}
}

func TestDefinitionsWaitForTheirObjects(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		w := widget(map[string]any{"color": "red"})
		w.SetFinalizers([]string{"example.com/hold"})
		testkit.Must(c.widgets().Create(t.Context(), w, metav1.CreateOptions{}))(t)
		c.deleteDefinition(t, widgetsDefinition)
		d := c.definition(t, widgetsDefinition)
		if got := condition(d, "Terminating"); got != "True InstanceDeletionInProgress" || len(d.GetFinalizers()) != 1 {
			t.Errorf("got the condition %q and the finalizers %q", got, d.GetFinalizers())
		}
		w = testkit.Must(c.widgets().Get(t.Context(), "w", metav1.GetOptions{}))(t)
		if w.GetDeletionTimestamp() == nil {
			t.Errorf("got %v, want an object that is being deleted", w)
		}
		w = widget(map[string]any{"color": "red"})
		w.SetName("new")
		if _, err := c.widgets().Create(t.Context(), w, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("a create: got %v, want it to be forbidden", err)
		}
		testkit.Must(c.widgets().Patch(t.Context(), "w", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))(t)
		synctest.Wait()
		if d, err := c.definitions().Get(t.Context(), widgetsDefinition,
			metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, %v, want the definition to be gone", d, err)
		}
		if _, err := c.widgets().List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("a list: got %v, want the resource to be gone", err)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

func TestWatchesEndWithTheirDefinition(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		old := c.definition(t, widgetsDefinition)
		w := testkit.Must(c.widgets().Watch(t.Context(), metav1.ListOptions{}))(t)
		defer w.Stop()
		c.deleteDefinition(t, widgetsDefinition)
		old.SetResourceVersion("")
		testkit.Must(c.definitions().Create(t.Context(), old, metav1.CreateOptions{}))(t)
		testkit.Must(c.widgets().Create(t.Context(), widget(map[string]any{"color": "red"}), metav1.CreateOptions{}))(t)
		if ended, events := ended(w); !ended || len(events) > 0 {
			t.Errorf("the watch ended: %t; got the events %v", ended, events)
		}
		w = testkit.Must(c.widgets().Watch(t.Context(), metav1.ListOptions{}))(t)
		defer w.Stop()
		if ended, events := ended(w); ended || len(events) != 1 {
			t.Errorf("a watch of the new resource ended: %t; got the events %v", ended, events)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

// TestWatchesShowTheLastDeletions deletes a definition while a watch of its objects is open.
func TestWatchesShowTheLastDeletions(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		testkit.Must(c.widgets().Create(t.Context(), widget(map[string]any{"color": "red"}), metav1.CreateOptions{}))(t)
		w := testkit.Must(c.widgets().Watch(t.Context(), metav1.ListOptions{ResourceVersion: c.version(t)}))(t)
		defer w.Stop()
		c.deleteDefinition(t, widgetsDefinition)
		time.Sleep(time.Second)
		if _, events := ended(w); len(events) != 1 || events[0].Type != watch.Deleted {
			t.Errorf("got the events %v, want the deletion", events)
		}
		if ended, events := ended(w); !ended || events != nil {
			t.Errorf("the watch ended: %t; got the events %v after the deletion", ended, events)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

// TestDependentsOutliveNoDefinition deletes a definition with an owner.
func TestDependentsOutliveNoDefinition(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		w := testkit.Must(c.widgets().Create(t.Context(), widget(map[string]any{"color": "red"}),
			metav1.CreateOptions{}))(t)
		o := metav1.OwnerReference{APIVersion: w.GetAPIVersion(), Kind: w.GetKind(), Name: w.GetName(), UID: w.GetUID()}
		c.createConfigMap(t, named("child", o))
		synctest.Wait()
		c.deleteDefinition(t, widgetsDefinition)
		if got := c.configMaps(t); got != nil {
			t.Errorf("got %q, want nothing", got)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

func TestStorageVersionChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		testkit.Must(c.widgets().Create(t.Context(), widget(map[string]any{"color": "red"}), metav1.CreateOptions{}))(t)
		w := testkit.Must(c.widgets().Watch(t.Context(), metav1.ListOptions{ResourceVersion: c.version(t)}))(t)
		defer w.Stop()
		d := c.definition(t, widgetsDefinition)
		versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
		v1 := versions[0].(map[string]any)
		v2 := (&unstructured.Unstructured{Object: v1}).DeepCopy().Object
		v1["storage"], v2["name"] = false, "v2"
		_ = unstructured.SetNestedSlice(d.Object, []any{v1, v2}, "spec", "versions")
		_ = unstructured.SetNestedStringSlice(d.Object, []string{"wd"}, "spec", "names", "shortNames")
		testkit.Must(c.definitions().Update(t.Context(), d, metav1.UpdateOptions{}))(t)
		if ended, events := ended(w); !ended || len(events) > 0 {
			t.Errorf("the watch of v1 ended: %t; got the events %v", ended, events)
		}
		resource := widgets
		resource.Version = "v2"
		for _, o := range testkit.Must(c.dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{}))(t).Items {
			if o.GetAPIVersion() != "demo.example.com/v2" || o.GetGeneration() != 1 {
				t.Errorf("got %v in the list of v2", o)
			}
		}
		d = c.definition(t, widgetsDefinition)
		stored, _, _ := unstructured.NestedStringSlice(d.Object, "status", "storedVersions")
		short, _, _ := unstructured.NestedStringSlice(d.Object, "status", "acceptedNames", "shortNames")
		if fmt.Sprint(stored, short) != "[v1 v2] [wd]" {
			t.Errorf("got the stored versions %q and the short names %q", stored, short)
		}
		_ = unstructured.SetNestedSlice(d.Object, []any{v2}, "spec", "versions")
		if _, err := c.definitions().Update(t.Context(), d, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("removing a stored version: got %v", err)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds/widgets.yaml"}})
}

// version returns the version of a list of the widgets.
func (c *cluster) version(t *testing.T) string {
	t.Helper()
	return testkit.Must(c.widgets().List(t.Context(), metav1.ListOptions{}))(t).GetResourceVersion()
}

func TestScopeAndNamesOfADefinitionAreFixed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for path, value := range map[string]string{"scope": "Cluster", "names/kind": "Gizmo"} {
			patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/%s","value":%q}]`, path, value)
			_, err := c.definitions().Patch(t.Context(), widgetsDefinition, types.JSONPatchType, []byte(patch),
				metav1.PatchOptions{})
			if !apierrors.IsInvalid(err) {
				t.Errorf("%s: got %v, want Invalid", path, err)
			}
		}
		testkit.Must(c.widgets().Create(t.Context(), widget(map[string]any{"color": "red"}), metav1.CreateOptions{}))(t)
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

func TestNamesBecomeFreeWithTheirDefinition(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		d := c.definition(t, widgetsDefinition).DeepCopy()
		d.SetName("others.demo.example.com")
		d.SetResourceVersion("")
		names := map[string]any{"plural": "others", "singular": "other", "kind": "Widget", "listKind": "WidgetList"}
		_ = unstructured.SetNestedMap(d.Object, names, "spec", "names")
		testkit.Must(c.definitions().Create(t.Context(), d, metav1.CreateOptions{}))(t)
		synctest.Wait()
		d = c.definition(t, d.GetName())
		if condition(d, "Established") != "False NotAccepted" ||
			condition(d, "NamesAccepted") != "False ListKindConflict" {
			t.Errorf("got %v, want a definition that is not established", d.Object["status"])
		}
		c.deleteDefinition(t, widgetsDefinition)
		if d = c.definition(t, d.GetName()); condition(d, "Established") != "True InitialNamesAccepted" {
			t.Errorf("got %v, want an established definition", d.Object["status"])
		}
		resource := widgets
		resource.Resource = "others"
		testkit.Must(c.dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{}))(t)
	}, kubetest.Options{CRDs: []string{"testdata/crds"}})
}

func TestDeletedDefinitionsAcceptNewNames(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		w := widget(map[string]any{"color": "red"})
		w.SetFinalizers([]string{"example.com/hold"})
		testkit.Must(c.widgets().Create(t.Context(), w, metav1.CreateOptions{}))(t)
		c.deleteDefinition(t, widgetsDefinition)
		testkit.Must(c.definitions().Patch(t.Context(), widgetsDefinition, types.MergePatchType,
			[]byte(`{"spec":{"names":{"singular":"one"}}}`), metav1.PatchOptions{}))(t)
		synctest.Wait()
		d := c.definition(t, widgetsDefinition)
		singular, _, _ := unstructured.NestedString(d.Object, "status", "acceptedNames", "singular")
		if singular != "one" || condition(d, "Terminating") != "True InstanceDeletionInProgress" {
			t.Errorf("got %v, want the new singular, and a definition that is being deleted", d.Object["status"])
		}
		late := widget(map[string]any{"color": "red"})
		late.SetName("late")
		if _, err := c.widgets().Create(t.Context(), late, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want that no object can be created", err)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds/widgets.yaml"}})
}

// interop/kubernetes compares more conflicts with those of Kubernetes' own controllers.
func TestServedDefinitionsKeepTheirNamesAfterAConflict(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		d := c.definition(t, widgetsDefinition).DeepCopy()
		d.SetName("others.demo.example.com")
		d.SetResourceVersion("")
		names := map[string]any{"plural": "others", "kind": "Other", "shortNames": []any{"o"}}
		_ = unstructured.SetNestedMap(d.Object, names, "spec", "names")
		testkit.Must(c.definitions().Create(t.Context(), d, metav1.CreateOptions{}))(t)
		patch := []byte(`{"spec":{"names":{"shortNames":["wd","x"]}}}`)
		d = testkit.Must(c.definitions().Patch(t.Context(), d.GetName(), types.MergePatchType, patch,
			metav1.PatchOptions{}))(t)
		state := func() string {
			synctest.Wait()
			d = c.definition(t, d.GetName())
			short, _, _ := unstructured.NestedStringSlice(d.Object, "status", "acceptedNames", "shortNames")
			return fmt.Sprint(condition(d, "NamesAccepted"), ", ", condition(d, "Established"), ", ", short)
		}
		if got, want := state(), "False ShortNamesConflict, True InitialNamesAccepted, [o]"; got != want {
			t.Errorf("after a conflict: got %s, want %s", got, want)
		}
		resource := widgets
		resource.Resource = "others"
		testkit.Must(c.dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{}))(t)
		testkit.Must(c.definitions().Patch(t.Context(), widgetsDefinition, types.MergePatchType,
			[]byte(`{"spec":{"names":{"shortNames":["w"]}}}`), metav1.PatchOptions{}))(t)
		if got, want := state(), "True NoConflicts, True InitialNamesAccepted, [wd x]"; got != want {
			t.Errorf("after the name has become free: got %s, want %s", got, want)
		}
	}, kubetest.Options{CRDs: []string{"testdata/crds/widgets.yaml"}})
}
