//go:build !race

package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// A definer writes definitions to a server.
type definer struct {
	*testing.T
	client dynamic.Interface
}

func newDefiner(t *testing.T, c *rest.Config) *definer { return &definer{t, newDynamicClient(t, c)} }

func (d *definer) definitions() dynamic.ResourceInterface {
	return d.client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
}

// define creates a definition with the given names, which are members of spec.names in YAML.
func (d *definer) define(plural, names string) {
	d.Helper()
	var u unstructured.Unstructured
	text := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.demo.example.com}
spec:
  group: demo.example.com
  scope: Namespaced
  names: {plural: ` + plural + `, ` + names + `}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {replicas: {type: integer}, color: {type: string}}}
          status:
            type: object
            oneOf: [{required: [phase]}, {required: [replicas]}]
            properties: {phase: {type: string, maxLength: 3}, replicas: {type: integer}, list: {type: array, items: {type: string}}}
`
	err := yaml.Unmarshal([]byte(text), &u.Object)
	if err == nil {
		_, err = d.definitions().Create(d.Context(), &u, metav1.CreateOptions{})
	}
	if err != nil {
		d.Fatal(err)
	}
}

func (d *definer) patch(plural, patch string) {
	d.Helper()
	_, err := d.definitions().Patch(d.Context(), plural+".demo.example.com", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	if err != nil {
		d.Fatal(err)
	}
}

func (d *definer) delete(plural string) {
	d.Helper()
	if err := d.definitions().Delete(d.Context(), plural+".demo.example.com", metav1.DeleteOptions{}); err != nil {
		d.Fatal(err)
	}
}

// state returns the names and the conditions of all definitions, and whether they are served.
func (d *definer) state() (all []string) {
	d.Helper()
	list, err := d.definitions().List(d.Context(), metav1.ListOptions{})
	if err != nil {
		d.Fatal(err)
	}
	for _, o := range list.Items {
		names, _, _ := unstructured.NestedMap(o.Object, "status", "acceptedNames")
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		text := fmt.Sprint(o.GetName(), " ", names)
		for _, c := range conditions {
			c := c.(map[string]any)
			text += fmt.Sprintf("; %s=%s %s %s", c["type"], c["status"], c["reason"], c["message"])
		}
		_, err := d.widgets(strings.TrimSuffix(o.GetName(), ".demo.example.com")).List(d.Context(),
			metav1.ListOptions{})
		all = append(all, fmt.Sprint(text, "; served ", err == nil))
	}
	return all
}

func (d *definer) widgets(plural string) dynamic.ResourceInterface {
	return d.client.Resource(schema.GroupVersionResource{
		Group: "demo.example.com", Version: "v1",
		Resource: plural,
	}).Namespace("default")
}

// agreement limits the time until both servers have the same state. Only failing tests wait that
// long.
const agreement = 30 * time.Second

func TestNamesOfDefinitionsAreThoseOfACluster(t *testing.T) {
	ours, reference := newDefiner(t, kubetest.New(t, kubetest.Options{}).Config()),
		newDefiner(t, apiserver.Start(t).Config())
	for _, step := range []struct {
		name string
		do   func(d *definer)
	}{
		{"first", func(d *definer) { d.define("widgets", "kind: Widget, shortNames: [wd, w]") }},
		{"kind", func(d *definer) { d.define("gadgets", "kind: Widget, singular: gadget, shortNames: [gd]") }},
		{"plural", func(d *definer) { d.define("w", "kind: W, singular: ww") }},
		{"singular", func(d *definer) { d.define("others", "kind: Other, singular: widget") }},
		{"short names", func(d *definer) { d.define("things", "kind: Thing, shortNames: [wd, th, w]") }},
		{"list kind", func(d *definer) { d.define("lists", "kind: Item, listKind: WidgetList") }},
		{"partly accepted", func(d *definer) { d.define("more", "kind: More, shortNames: [gd]") }},
		{"fine", func(d *definer) { d.define("fines", "kind: Fine, categories: [all]") }},
		{"established", func(d *definer) { d.patch("fines", `{"spec":{"names":{"shortNames":["fi","wd"]}}}`) }},
		{"freed short name", func(d *definer) { d.patch("widgets", `{"spec":{"names":{"shortNames":["w"]}}}`) }},
		// Which of two that wait for one name gets it is luck in a cluster.
		{"given up", func(d *definer) { d.delete("lists") }},
		{"freed", func(d *definer) { d.delete("widgets") }},
	} {
		step.do(ours)
		step.do(reference)
		var diff string
		settled := func(ctx context.Context) (bool, error) {
			diff = cmp.Diff(reference.state(), ours.state())
			return diff == "", nil
		}
		if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, agreement, true, settled); err != nil {
			t.Fatalf("%s: (-apiextensions-apiserver +kubetest)\n%s", step.name, diff)
		}
	}
}

func TestTextsOfInvalidStatusesAreThoseOfACluster(t *testing.T) {
	ours, reference := newDefiner(t, kubetest.New(t, kubetest.Options{}).Config()),
		newDefiner(t, apiserver.Start(t).Config())
	for _, d := range []*definer{ours, reference} {
		d.define("widgets", "kind: Widget")
		eventually(t, "a widget", func() bool {
			object := map[string]any{
				"apiVersion": "demo.example.com/v1", "kind": "Widget",
				"metadata": map[string]any{"name": "w"},
			}
			_, err := d.widgets("widgets").Create(t.Context(), &unstructured.Unstructured{Object: object},
				metav1.CreateOptions{})
			return err == nil
		})
	}
	refusal := func(d *definer, subresource []string, patch string) any {
		var err error
		if patch == "" {
			_, err = d.widgets("widgets").Get(t.Context(), "w", metav1.GetOptions{}, subresource...)
		} else {
			_, err = d.widgets("widgets").Patch(t.Context(), "w", types.MergePatchType, []byte(patch),
				metav1.PatchOptions{}, subresource...)
		}
		if err == nil {
			return nil
		}
		status := err.(errors.APIStatus).Status()
		if d := status.Details; d != nil && len(d.Causes) > 1 {
			// The errors, and their texts in the message, are in the random order of a map.
			status.Message, d.UID = "", ""
			slices.SortFunc(d.Causes,
				func(a, b metav1.StatusCause) int { return strings.Compare(a.Message, b.Message) })
		}
		return status
	}
	for _, tt := range []struct{ subresource, patch string }{
		{"status", `{"status":{"phase":7}}`},
		{"status", `{"status":{"phase":"long"}}`},
		{"status", `{"status":{}}`},
		{"status", `{"status":{"phase":"a","replicas":1}}`},
		{"status", `{"status":{"phase":"a","list":["a",1]}}`},
		{"status", `{"status":"x"}`},
		{"status", `{"status":["x"]}`},
		{"status", `{"status":{"replicas":-1}}`},
		{"status", `{"status":{"replicas":1.5}}`},
		{"status", `{"status":{"replicas":3000000000}}`},
		{"", `{"spec":{"replicas":-1}}`},
		{"", `{"spec":{"replicas":1.5}}`},
		{"", `{"spec":{"replicas":3000000000}}`},
		{"", `{"spec":{"replicas":"1"}}`},
		{"", `{"spec":"x"}`},
		{"scale", ""},
		{"scale", `{"metadata":{"name":"w"}}`},
		{"scale", `{"spec":{"replicas":-1}}`},
	} {
		var subresource []string
		if tt.subresource != "" {
			subresource = []string{tt.subresource}
		}
		want, got := refusal(reference, subresource, tt.patch), refusal(ours, subresource, tt.patch)
		if want == nil {
			t.Errorf("%s %s was accepted", tt.subresource, tt.patch)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s: (-apiextensions-apiserver +kubetest)\n%s", tt.subresource, tt.patch, diff)
		}
	}
}
