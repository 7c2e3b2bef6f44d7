package kubetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

var severalVersions = kubetest.Options{CRDs: []string{"testdata/versions.yaml"}}

// gears returns the gears in the namespace default, in one version.
func (c *cluster) gears(version string) dynamic.ResourceInterface {
	return c.dynamic.Resource(schema.GroupVersionResource{
		Group: "demo.example.com", Version: version, Resource: "gears",
	}).Namespace("default")
}

func gear(version, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "demo.example.com/" + version, "kind": "Gear", "metadata": map[string]any{"name": name},
	}}
	if spec != nil {
		o.Object["spec"] = spec
	}
	return o
}

// versionAndSpec returns the version of a gear and its spec.
func versionAndSpec(o *unstructured.Unstructured) string {
	return fmt.Sprint(strings.TrimPrefix(o.GetAPIVersion(), "demo.example.com/"), " ", o.Object["spec"])
}

func TestVersionsShowTheSameObjects(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for _, version := range []string{"v1", "v1beta1"} {
			o := gear(version, "from-"+version, map[string]any{"teeth": int64(7), "old": "x"})
			o = testkit.Must(c.gears(version).Create(t.Context(), o, metav1.CreateOptions{}))(t)
			if o.GetAPIVersion() != "demo.example.com/"+version {
				t.Errorf("created %v", o)
			}
		}
		// The storage version does not have the field old. Its schema has the only default.
		const want = " map[material:steel teeth:7]"
		for _, version := range []string{"v1", "v1beta1"} {
			list := testkit.Must(c.gears(version).List(t.Context(), metav1.ListOptions{}))(t)
			for _, o := range list.Items {
				got := testkit.Must(c.gears(version).Get(t.Context(), o.GetName(), metav1.GetOptions{}))(t)
				if versionAndSpec(&o) != version+want || versionAndSpec(got) != version+want {
					t.Errorf("got %s in a list and %s alone, want %s", versionAndSpec(&o), versionAndSpec(got), want)
				}
			}
			if len(list.Items) != 2 || list.GetAPIVersion() != "demo.example.com/"+version {
				t.Errorf("got the list %v", list)
			}
		}
		if _, err := c.gears("v1alpha1").List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("a version that is not served: %v", err)
		}
	}, severalVersions)
}

func TestVersionsHaveTheirOwnRules(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		many := map[string]any{"teeth": int64(100)}
		_, err := c.gears("v1").Create(t.Context(), gear("v1", "a", many), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("v1: got %v, want too many teeth", err)
		}
		testkit.Must(c.gears("v1beta1").Create(t.Context(), gear("v1beta1", "a", many), metav1.CreateOptions{}))(t)
		o := testkit.Must(c.gears("v1").Get(t.Context(), "a", metav1.GetOptions{}))(t)
		o.Object["status"] = map[string]any{"turns": int64(1)}
		testkit.Must(c.gears("v1").UpdateStatus(t.Context(), o, metav1.UpdateOptions{}))(t)
		_, err = c.gears("v1beta1").UpdateStatus(t.Context(), o, metav1.UpdateOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the status in v1beta1: got %v, want no such subresource", err)
		}
		options := metav1.ListOptions{FieldSelector: "spec.teeth=100"}
		selected := testkit.Must(c.gears("v1").List(t.Context(), options))(t)
		if len(selected.Items) != 1 {
			t.Errorf("got %d objects with a field selector", len(selected.Items))
		}
		if _, err := c.gears("v1beta1").List(t.Context(), options); err == nil {
			t.Error("v1beta1 has no selectable fields")
		}
	}, severalVersions)
}

func TestEachVersionIsWatched(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		yes := true
		o := metav1.ListOptions{
			SendInitialEvents: &yes, AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}
		testkit.Must(c.gears("v1").Create(t.Context(), gear("v1", "a", nil), metav1.CreateOptions{}))(t)
		for _, version := range []string{"v1", "v1beta1"} {
			w := testkit.Must(c.gears(version).Watch(t.Context(), o))(t)
			patch := []byte(`{"metadata":{"labels":{"seen":"` + version + `"}}}`)
			synctest.Wait()
			testkit.Must(c.gears("v1").Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}))(t)
			for _, want := range []string{"ADDED", "BOOKMARK", "MODIFIED"} {
				e := <-w.ResultChan()
				u, _ := e.Object.(*unstructured.Unstructured)
				if string(e.Type) != want || u == nil || u.GetAPIVersion() != "demo.example.com/"+version {
					t.Errorf("%s: got %s %v, want %s", version, e.Type, e.Object, want)
				}
			}
			w.Stop()
		}
	}, severalVersions)
}

// gearApplier returns a function with which managers apply the gear a.
func (c *cluster) gearApplier(
	ctx context.Context,
) func(version, manager string, spec map[string]any) (*unstructured.Unstructured, error) {
	return func(version, manager string, spec map[string]any) (*unstructured.Unstructured, error) {
		o := metav1.ApplyOptions{FieldManager: manager}
		return c.gears(version).Apply(ctx, "a", gear(version, "a", spec), o)
	}
}

func TestManagersApplyDifferentVersions(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		apply := c.gearApplier(t.Context())
		testkit.Must(apply("v1beta1", "old", map[string]any{"teeth": int64(7)}))(t)
		testkit.Must(apply("v1", "new", map[string]any{"material": "brass"}))(t)
		if _, err := apply("v1", "new", map[string]any{"teeth": int64(8)}); !apierrors.IsConflict(err) ||
			!strings.Contains(err.Error(), `conflict with "old": .spec.teeth`) {
			t.Errorf("got %v, want a conflict with the manager of the other version", err)
		}
		o := testkit.Must(apply("v1beta1", "old", map[string]any{"teeth": int64(9)}))(t)
		var versions []string
		for _, entry := range o.GetManagedFields() {
			versions = append(versions, entry.Manager+" "+entry.APIVersion)
		}
		if got := fmt.Sprint(versions); got != "[new demo.example.com/v1 old demo.example.com/v1beta1]" {
			t.Errorf("got the managers %s", got)
		}
		testkit.Must(apply("v1beta1", "old", nil))(t)
		o = testkit.Must(c.gears("v1").Get(t.Context(), "a", metav1.GetOptions{}))(t)
		if got := versionAndSpec(o); got != "v1 map[material:brass]" {
			t.Errorf("got %s, want the teeth to be removed", got)
		}
	}, severalVersions)
}

func TestWritersOwnTheDefaultsOfTheirVersion(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		apply := c.gearApplier(t.Context())
		storedInBeta := `[{"op":"replace","path":"/spec/versions/1/storage","value":true},` +
			`{"op":"replace","path":"/spec/versions/2/storage","value":false}]`
		testkit.Must(c.dynamic.Resource(definitions).Patch(t.Context(), "gears.demo.example.com",
			types.JSONPatchType, []byte(storedInBeta), metav1.PatchOptions{}))(t)
		testkit.Must(apply("v1beta1", "old", map[string]any{"teeth": int64(7)}))(t)
		o := testkit.Must(apply("v1", "new", nil))(t)
		if got := versionAndSpec(o); got != "v1 map[teeth:7]" {
			t.Errorf("an apply that changes no value: got %s, want no default", got)
		}
		patch := []byte(`{"spec":{"color":"red"}}`)
		o = testkit.Must(c.gears("v1").Patch(t.Context(), "a", types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: "patcher"}))(t)
		if got := versionAndSpec(o); got != "v1 map[material:steel teeth:7]" {
			t.Errorf("a patch: got %s, want the default of v1", got)
		}
		_, err := apply("v1", "new", map[string]any{"material": "brass"})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "patcher"`) {
			t.Errorf("got %v, want a conflict with the writer of the default", err)
		}
	}, severalVersions)
}

func TestManagersOfALostVersionMakeAppliesFail(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		apply := c.gearApplier(t.Context())
		change := func(patch string) {
			testkit.Must(c.dynamic.Resource(definitions).Patch(t.Context(), "gears.demo.example.com",
				types.JSONPatchType, []byte(patch), metav1.PatchOptions{}))(t)
		}
		testkit.Must(apply("v1beta1", "old", map[string]any{"teeth": int64(7)}))(t)
		change(`[{"op":"replace","path":"/spec/versions/1/served","value":false}]`)
		_, err := apply("v1", "new", map[string]any{"teeth": int64(8)})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "old"`) {
			t.Errorf("got %v, want a conflict with the manager of a version that is not served", err)
		}
		const lost = "request to convert CR to an invalid group/version: demo.example.com/v1beta1"
		for _, remove := range []string{"1", "0"} { // then v1 is the only version
			change(`[{"op":"remove","path":"/spec/versions/` + remove + `"}]`)
			_, err = apply("v1", "new", map[string]any{"material": "brass"})
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != 500 || !strings.Contains(err.Error(), lost) {
				t.Errorf("got %v, want status 500 because of %q", err, lost)
			}
		}
		unmanaged := []byte(`{"metadata":{"managedFields":[{}]}}`)
		testkit.Must(c.gears("v1").Patch(t.Context(), "a", types.MergePatchType, unmanaged, metav1.PatchOptions{}))(t)
		testkit.Must(apply("v1", "new", map[string]any{"color": "red"}))(t)
	}, severalVersions)
}

func TestDeprecatedVersionsSendWarnings(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var got warnings
		config := c.Config()
		config.WarningHandler = &got
		gears := func(version string) {
			_, err := testkit.Must(dynamic.NewForConfig(config))(t).Resource(schema.GroupVersionResource{
				Group: "demo.example.com", Version: version, Resource: "gears",
			}).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		gears("v1")
		gears("v1beta1")
		const want = "[demo.example.com/v1beta1 Gear is deprecated; use demo.example.com/v1 Gear]"
		if fmt.Sprint(got.texts) != want {
			t.Errorf("got the warnings %q, want %s", got.texts, want)
		}
	}, severalVersions)
}

func TestObjectsOutliveTheirStorageVersion(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		testkit.Must(c.gears("v1").Create(t.Context(), gear("v1", "a", map[string]any{"teeth": int64(7)}),
			metav1.CreateOptions{}))(t)
		// The storage version becomes v1beta1, and v1 is no longer served.
		patch := []byte(`[{"op":"replace","path":"/spec/versions/1/storage","value":true},` +
			`{"op":"replace","path":"/spec/versions/2/storage","value":false},` +
			`{"op":"replace","path":"/spec/versions/2/served","value":false}]`)
		d := testkit.Must(c.dynamic.Resource(definitions).Patch(t.Context(), "gears.demo.example.com",
			types.JSONPatchType, patch, metav1.PatchOptions{}))(t)
		stored, _, _ := unstructured.NestedStringSlice(d.Object, "status", "storedVersions")
		if fmt.Sprint(stored) != "[v1 v1beta1]" {
			t.Errorf("got the stored versions %s", stored)
		}
		o := testkit.Must(c.gears("v1beta1").Get(t.Context(), "a", metav1.GetOptions{}))(t)
		if versionAndSpec(o) != "v1beta1 map[material:steel teeth:7]" {
			t.Errorf("got %s", versionAndSpec(o))
		}
		if _, err := c.gears("v1").List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("v1: got %v, want that it is not served", err)
		}
		if err := c.gears("v1beta1").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}, severalVersions)
}
