package collectiontest

import (
	"errors"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/typed"
)

// A Widget is an object of the custom resource that the tests define, with some of its members.
type Widget struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	listwatch.Metadata `json:"metadata"`
	Spec               struct {
		Color    string `json:"color"`
		Replicas int    `json:"replicas,omitempty"`
	} `json:"spec"`
	Status struct {
		Replicas int `json:"replicas,omitempty"`
	} `json:"status,omitzero"`
}

// RunStatus tests that a program stores a status or gets an error. remote is the collection of the
// custom resource widgets.v1.demo.example.com, which has the subresource status. The objects are
// created in namespace.
func RunStatus(t *testing.T, remote *client.Remote, namespace string) {
	ctx := t.Context()
	widgets := typed.Collection[Widget]{Store: remote}
	statuses := typed.Collection[Widget]{Store: client.Subresource{Remote: remote, Name: "status"}}
	w := Widget{
		APIVersion: "demo.example.com/v1", Kind: "Widget",
		Metadata: listwatch.Metadata{GenerateName: "status-", Namespace: namespace},
	}
	w.Spec.Color = "red"
	w, err := widgets.Create(ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	key := w.Key()
	set := func(color string, replicas int) func(*Widget) error {
		return func(w *Widget) error { w.Spec.Color, w.Status.Replicas = color, replicas; return nil }
	}
	want := func(what string, got Widget, err error, color string, replicas int) {
		t.Helper()
		if err != nil || got.Spec.Color != color || got.Status.Replicas != replicas {
			t.Errorf("%s: got %+v, %v, want color %s and status %d", what, got, err, color, replicas)
		}
	}
	if _, err := widgets.Update(ctx, key, set("blue", 1)); !errors.Is(err, listwatch.Unsupported) {
		t.Errorf("update of the whole object: got %v, want code Unsupported", err)
	}
	got, err := widgets.Get(ctx, key)
	want("get after it", got, err, "blue", 0)
	got, err = statuses.Update(ctx, key, set("green", 2))
	want("update of the status", got, err, "blue", 2)
	got, err = statuses.Get(ctx, key)
	want("get of the status", got, err, "blue", 2)
	got, err = widgets.Update(ctx, key, func(w *Widget) error { w.Spec.Color = "green"; return nil })
	want("update of the color", got, err, "green", 2)
	patch := func(c typed.Collection[Widget], kind listwatch.PatchType, data string) (Widget, error) {
		return c.Patch(ctx, key, listwatch.Patch{Type: kind, Data: []byte(data), FieldManager: "test"})
	}
	got, err = patch(widgets, listwatch.MergePatch, `{"spec":{"color":"red"},"status":{"replicas":9}}`)
	want("merge patch", got, err, "red", 2)
	got, err = patch(statuses, listwatch.MergePatch, `{"status":{"replicas":3}}`)
	want("merge patch of the status", got, err, "red", 3)
	got, err = patch(widgets, listwatch.JSONPatch, `[{"op":"replace","path":"/spec/color","value":"blue"}]`)
	want("JSON patch", got, err, "blue", 3)
	if _, err := patch(widgets, "text/plain", `{}`); !errors.Is(err, listwatch.Unsupported) {
		t.Errorf("another type of patch: got %v, want code Unsupported", err)
	}
	testApply(t, widgets, key)
	if _, err := statuses.Create(ctx, w); !errors.Is(err, listwatch.Unsupported) {
		t.Errorf("create of a status: got %v, want code Unsupported", err)
	}
	if _, err := statuses.Delete(ctx, key, 0); !errors.Is(err, listwatch.Unsupported) {
		t.Errorf("delete of a status: got %v, want code Unsupported", err)
	}
	if _, err := widgets.Delete(ctx, key, 0); err != nil {
		t.Error(err)
	}
}

// testApply applies configurations of two managers to the object at key.
func testApply(t *testing.T, widgets typed.Collection[Widget], key listwatch.Key) {
	apply := func(manager string, replicas int, force bool) (Widget, error) {
		data, err := listwatch.Encode(map[string]any{
			"apiVersion": "demo.example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace},
			"spec":     map[string]any{"replicas": replicas},
		})
		if err != nil {
			t.Fatal(err)
		}
		p := listwatch.Patch{Type: listwatch.ApplyPatch, Data: data, FieldManager: manager, Force: force}
		return widgets.Patch(t.Context(), key, p)
	}
	if got, err := apply("one", 4, false); err != nil || got.Spec.Replicas != 4 {
		t.Errorf("apply: got %+v, %v, want 4 replicas", got, err)
	}
	if _, err := apply("two", 5, false); !errors.Is(err, listwatch.Conflict) {
		t.Errorf("apply of another manager: got %v, want Conflict", err)
	}
	if got, err := apply("two", 5, true); err != nil || got.Spec.Replicas != 5 {
		t.Errorf("forced apply: got %+v, %v, want 5 replicas", got, err)
	}
}
