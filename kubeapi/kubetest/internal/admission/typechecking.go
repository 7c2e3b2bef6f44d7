package admission

import (
	"encoding/json"
	"strings"

	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/apply"
	kubeschema "github.com/listwatch/listwatch/kubeapi/schema"
	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// CheckTypes returns policy, a ValidatingAdmissionPolicy, with the warnings about the types in its
// expressions, as a controller of a cluster does. If the status is already that of the present
// generation, CheckTypes returns policy itself.
func (c *Chain) CheckTypes(policy []byte) ([]byte, error) {
	var p v1.ValidatingAdmissionPolicy
	if err := json.Unmarshal(policy, &p); err != nil {
		return nil, err
	}
	if p.Generation <= p.Status.ObservedGeneration {
		return policy, nil
	}
	checker := validating.TypeChecker{SchemaResolver: schemas{c.Cluster}, RestMapper: mapper{cluster: c.Cluster}}
	warnings := checker.Check(&p) // if there are none, null removes the old ones
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": p.Generation, "typeChecking": map[string]any{"expressionWarnings": warnings},
	}})
	if err != nil {
		return nil, err
	}
	return rawjson.Merge(policy, patch)
}

// A mapper finds the kinds of resources. All other methods panic.
type mapper struct {
	meta.RESTMapper
	cluster Cluster
}

// KindsFor implements [meta.RESTMapper]. As in Kubernetes, an empty group stands for all groups.
func (m mapper) KindsFor(want schema.GroupVersionResource) (all []schema.GroupVersionKind, err error) {
	found := m.cluster.Find(func(r *kubeapi.Resource) bool {
		return r.Version == want.Version && (want.Group == "" || r.Group == want.Group) && r.Plural == want.Resource
	})
	if len(found) == 0 {
		return nil, &meta.NoResourceMatchError{PartialResource: want}
	}
	for _, r := range found {
		all = append(all, objects{resource: &r}.kind())
	}
	return all, nil
}

// schemas has the schemas of all kinds.
type schemas struct{ cluster Cluster }

// ResolveSchema implements [resolver.SchemaResolver]. The result has no references. As in
// Kubernetes, a type that contains itself is an object without members there.
func (s schemas) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	r, found := find(s.cluster, kind)
	if !found || r.Schema == nil {
		return nil, resolver.ErrSchemaNotFound
	}
	definitions, root := apply.Definitions{}, new(spec.Schema)
	if r.Schema.OpenAPI == nil {
		root = definitions.Object(r.Schema)
	} else if err := json.Unmarshal(r.Schema.OpenAPI, root); err != nil {
		return nil, err
	}
	root.SetProperty("apiVersion", *spec.StringProperty())
	root.SetProperty("kind", *spec.StringProperty())
	metadata := kubeschema.Kubernetes("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
	root.SetProperty("metadata", *definitions.Reference(metadata))
	return resolver.PopulateRefs(func(reference string) (*spec.Schema, bool) {
		name, isReference := strings.CutPrefix(reference, apply.Prefix)
		if !isReference {
			return root, true
		}
		definition, found := definitions[name]
		return definition, found
	}, "root")
}
