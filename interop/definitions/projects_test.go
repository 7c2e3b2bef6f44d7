//go:build !race

package definitions

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// projects are the modules whose definitions are loaded. The first five are small, and are loaded
// on each run.
var projects = []string{
	"github.com/kubernetes-csi/external-snapshotter/client/v8@v8.7.0",
	"github.com/ray-project/kuberay/ray-operator@v1.5.0",
	"go.universe.tf/metallb@v0.16.2",
	"sigs.k8s.io/karpenter@v1.12.1",
	"github.com/kedacore/keda/v2@v2.21.0",

	"github.com/argoproj/argo-cd/v3@v3.5.4",
	"github.com/argoproj/argo-rollouts@v1.9.0",
	"github.com/cert-manager/cert-manager@v1.21.2",
	"github.com/chaos-mesh/chaos-mesh@v0.9.1-0.20260902003049-47411975a8cb",
	"github.com/cilium/cilium@v1.20.2",
	"github.com/elastic/cloud-on-k8s/v3@v3.5.0",
	"github.com/envoyproxy/gateway@v1.9.1",
	"github.com/external-secrets/external-secrets@v1.3.2",
	"github.com/fluxcd/kustomize-controller@v1.7.3",
	"github.com/fluxcd/source-controller@v1.8.5",
	"github.com/kubeflow/trainer/v2@v2.0.0",
	"github.com/kubeflow/training-operator@v1.8.1",
	"github.com/kubernetes-sigs/aws-load-balancer-controller@v0.0.0-20260423195125-93ff3b5fdaad",
	"github.com/kyverno/kyverno@v1.19.1",
	"github.com/open-policy-agent/gatekeeper/v3@v3.23.1",
	"github.com/projectcontour/contour@v1.33.8",
	"github.com/prometheus-operator/prometheus-operator@v0.85.0",
	"github.com/traefik/traefik/v3@v3.7.13",
	"github.com/vmware-tanzu/velero@v1.18.3",
	"istio.io/api@v1.32.0",
	"knative.dev/serving@v0.51.0",
	"sigs.k8s.io/cluster-api@v1.14.2",
	"sigs.k8s.io/gateway-api@v1.6.3",
	"sigs.k8s.io/kueue@v0.17.0",
	"sigs.k8s.io/network-policy-api@v0.3.0",
}

const maxSamples = 8 // of each kind

// A project holds what the files of a module contain.
type project struct {
	definitions []*unstructured.Unstructured
	samples     []*unstructured.Unstructured // of the served versions of the definitions
}

// read reads all YAML files of a module. If several define the same resource, the first counts.
func read(t *testing.T, directory string) (p project) {
	t.Helper()
	seen := map[string]bool{}
	counts := map[string]int{}
	all := decodeFiles(t, directory)
	for _, o := range all {
		if o.GetKind() == "CustomResourceDefinition" && o.GetAPIVersion() == "apiextensions.k8s.io/v1" &&
			!seen[o.GetName()] {
			seen[o.GetName()] = true
			delete(o.Object, "status")
			// The reference has no resolver for the services of webhooks, and panics when it needs
			// one.
			unstructured.RemoveNestedField(o.Object, "spec", "conversion")
			p.definitions = append(p.definitions, o)
		}
	}
	kinds := map[string]string{} // the scope, by apiVersion and kind
	for _, d := range p.definitions {
		for _, r := range resourcesOf(d) {
			kinds[r.apiVersion()+" "+r.kind] = r.scope
		}
	}
	for _, o := range all {
		kind := o.GetAPIVersion() + " " + o.GetKind()
		scope, known := kinds[kind]
		isTemplate := strings.Contains(o.GetName(), "{{")
		if !known || o.GetName() == "" || isTemplate || counts[kind] == maxSamples {
			continue
		}
		counts[kind]++
		o.SetNamespace("")
		if scope == "Namespaced" {
			o.SetNamespace("default")
		}
		o.SetName(o.GetName() + "-" + string(rune('a'+counts[kind])))
		o.SetResourceVersion("") // of the cluster that the sample is from
		p.samples = append(p.samples, o)
	}
	return p
}

// decodeFiles returns the objects in the YAML files below a directory.
func decodeFiles(t *testing.T, directory string) (all []*unstructured.Unstructured) {
	t.Helper()
	err := filepath.WalkDir(directory, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "apiVersion:") {
			return err
		}
		for documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(string(text)), 4096); ; {
			var o unstructured.Unstructured
			if err := documents.Decode(&o.Object); err != nil {
				return nil // the end of the file, or a template
			}
			if o.Object["apiVersion"] != nil && o.Object["metadata"] != nil {
				all = append(all, &o)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A resource is the resource of a CustomResourceDefinition.
type resource struct{ group, version, plural, kind, scope string }

func (r resource) apiVersion() string { return r.group + "/" + r.version }

// resourcesOf returns the resource that a definition defines, in each version that is served.
func resourcesOf(definition *unstructured.Unstructured) (all []resource) {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(definition.Object, path...)
		return s
	}
	r := resource{
		group: text("spec", "group"), plural: text("spec", "names", "plural"),
		kind: text("spec", "names", "kind"), scope: text("spec", "scope"),
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok && m["served"] == true {
			r.version, _ = m["name"].(string)
			all = append(all, r)
		}
	}
	return all
}
