//go:build !race

package suites

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	// The test reads the files of this module.
	_ "sigs.k8s.io/gateway-api/apis/v1"
)

// waitTimeout limits the time until a definition is served. Only failing tests wait that long.
const waitTimeout = 5 * time.Minute

var definitionResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// gatewayDirectory returns the directory of the module of the Gateway API.
func gatewayDirectory(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// readObjects returns the objects in the YAML files below a directory.
func readObjects(t *testing.T, directory string) (all []*unstructured.Unstructured) {
	t.Helper()
	err := filepath.WalkDir(directory, func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		for documents := utilyaml.NewYAMLOrJSONDecoder(file, 4096); ; {
			var o unstructured.Unstructured
			if err := documents.Decode(&o.Object); err != nil {
				return nil // the end of the file, or a file that is not meant to be valid
			}
			if o.Object != nil {
				all = append(all, &o)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A gateway is a server with the custom resources of the Gateway API.
type gateway struct {
	dynamic.Interface
	resources map[string]schema.GroupVersionResource // by kind
}

// newGateway creates the definitions, and waits until they are served.
func newGateway(t *testing.T, c *rest.Config, definitions []*unstructured.Unstructured) *gateway {
	t.Helper()
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{client, map[string]schema.GroupVersionResource{}}
	for _, d := range definitions {
		if d.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if _, err := client.Resource(definitionResource).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		spec := d.Object["spec"].(map[string]any)
		if !storesV1(spec) {
			continue
		}
		names := spec["names"].(map[string]any)
		r := schema.GroupVersionResource{
			Group: spec["group"].(string), Version: "v1",
			Resource: names["plural"].(string),
		}
		g.resources[names["kind"].(string)] = r
		served := func() bool {
			_, err := client.Resource(r).List(t.Context(), metav1.ListOptions{})
			return err == nil
		}
		for deadline := time.Now().Add(waitTimeout); !served(); {
			if time.Now().After(deadline) {
				t.Fatalf("%s are not served", r.Resource)
			}
		}
	}
	return g
}

// storesV1 reports whether v1 is the storage version. kubetest serves no other version.
func storesV1(definition map[string]any) bool {
	return slices.ContainsFunc(definition["versions"].([]any), func(v any) bool {
		version := v.(map[string]any)
		return version["name"] == "v1" && version["storage"] == true
	})
}

// create makes a dry run of a create, and returns the stored spec, or the status and its causes.
func (g *gateway) create(t *testing.T, o *unstructured.Unstructured) (spec any, faults []string) {
	t.Helper()
	var c dynamic.ResourceInterface = g.Resource(g.resources[o.GetKind()])
	if o.GetNamespace() != "" {
		c = g.Resource(g.resources[o.GetKind()]).Namespace(o.GetNamespace())
	}
	created, err := c.Create(t.Context(), o.DeepCopy(),
		metav1.CreateOptions{DryRun: []string{"All"}, FieldValidation: "Ignore"})
	if err == nil {
		return created.Object["spec"], nil
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		t.Fatal(err)
	}
	faults = append(faults, fmt.Sprint(status.ErrStatus.Code))
	if status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			faults = append(faults, fmt.Sprint(cause.Type, " ", cause.Field, ": ", cause.Message))
		}
	}
	slices.Sort(faults)
	return nil, slices.Compact(faults)
}

// variants calls try with o after each of many small changes.
func variants(o *unstructured.Unstructured, try func(change string)) {
	var walk func(path string, value any, set func(any))
	walk = func(path string, value any, set func(any)) {
		with := func(change string, other any) {
			set(other)
			try(path + " " + change)
			set(value)
		}
		switch value := value.(type) {
		case map[string]any:
			with("is null", nil)
			value["unknown"] = "x"
			try(path + " has an unknown member")
			delete(value, "unknown")
			for name, member := range value {
				delete(value, name)
				try(path + "." + name + " is missing")
				value[name] = member
				walk(path+"."+name, member, func(v any) { value[name] = v })
			}
		case []any:
			with("is empty", []any{})
			with("is repeated", append(slices.Clone(value), value...))
			for i := range value {
				walk(fmt.Sprintf("%s[%d]", path, i), value[i], func(v any) { value[i] = v })
			}
		case string:
			with("is empty", "")
			with("is not a name", "Not a name!")
			with("is long", strings.Repeat("x", 300))
			with("is a number", int64(1))
		default:
			with("is negative", int64(-1))
			with("is large", int64(1<<40))
			with("is a string", "x")
		}
	}
	spec := o.Object["spec"]
	walk("spec", spec, func(v any) { o.Object["spec"] = v })
}

// TestGatewayAPIIsValidatedAlike sends the examples of the Gateway API, and each of them after many
// small changes, to both servers. Both must accept the same objects and complete them alike, or
// name the same faults.
func TestGatewayAPIIsValidatedAlike(t *testing.T) {
	directory := gatewayDirectory(t)
	definitions := readObjects(t, filepath.Join(directory, "config/crd/standard"))
	kubernetes := newGateway(t, apiserver.Start(t).Config(), definitions)
	ours := newGateway(t, kubetest.New(t, kubetest.Options{}).Config(), definitions)
	tried, accepted := 0, 0
	for _, o := range readObjects(t, filepath.Join(directory, "examples/standard")) {
		if _, known := ours.resources[o.GetKind()]; !known || o.GroupVersionKind().Version != "v1" {
			continue
		}
		if o.GetKind() != "GatewayClass" {
			o.SetNamespace("default")
		}
		try := func(change string) {
			tried++
			want, wantFaults := kubernetes.create(t, o)
			got, gotFaults := ours.create(t, o)
			if wantFaults == nil {
				accepted++
			}
			if diff := cmp.Diff(wantFaults, gotFaults); diff != "" {
				t.Errorf("%s %s: %s: (-want +got)\n%s", o.GetKind(), o.GetName(), change, diff)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s: %s: (-want +got)\n%s", o.GetKind(), o.GetName(), change, diff)
			}
		}
		try("unchanged")
		variants(o, try)
	}
	t.Logf("compared %d objects, of which %d are valid", tried, accepted)
	if tried < 1000 {
		t.Errorf("compared only %d objects", tried)
	}
}
