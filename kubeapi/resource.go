package kubeapi

import (
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/store"
)

// A Resource declares what is served at one pair of paths. It must not be modified once a [Handler] has it.
type Resource struct {
	// Group and Version are the first half of the path; the core group is empty.
	Group, Version string
	// Plural is the second half, in lower case; Singular and ShortNames are other words for it that people type. An empty
	// Singular is Kind in lower case.
	Plural, Singular string
	ShortNames       []string
	// Categories are words for several resources at once, such as "all"; kubectl get understands them.
	Categories []string
	// Kind is that of the objects.
	Kind string
	// Namespaced is true where every object is in a namespace; otherwise none is.
	Namespaced bool
	// Fields are the paths that a field selector may name; see [store.Resource].
	Fields []string
	// CheckName says whether an object may have a name; nil: a DNS subdomain. See [store.Resource].
	CheckName func(name string) error
	// Scale says that the objects can be scaled, and how; nil: they can't.
	Scale *Scale
	// NoCompression answers requests for the resource as if no client could decompress anything; see
	// [watchserver.Server.NoCompression], which does so for all.
	NoCompression bool
	// ReadOnly serves no writes: they are answered 405, and discovery names the verbs get, list and watch alone.
	ReadOnly bool
	// Columns are what kubectl get shows beside the name. Nil: the age; empty: nothing.
	Columns []Column
	// Schema is what is known of the objects, for OpenAPI, for strategic merge patches, and to refuse values of other types; their metadata
	// is known without it. Nil: nothing, and strategic merge patches are refused, as for custom resources in Kubernetes.
	Schema *schema.Type
}

// APIVersion is what the objects bear: "v1" or "apps/v1".
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Declare returns r as a store wants it.
func (r Resource) CollectionSpec() store.CollectionSpec {
	return store.CollectionSpec{
		APIVersion: r.APIVersion(), Kind: r.Kind, Plural: r.Plural, Namespaced: r.Namespaced,
		Fields: r.Fields, CheckName: r.CheckName,
	}
}

// Path returns where the objects of a namespace are listed; an empty one means all of them, and resources without namespaces
// have no other.
func (r Resource) Path(namespace string) string {
	root := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		root = "/api/" + r.Version
	}
	if namespace != "" && r.Namespaced {
		root += "/namespaces/" + namespace
	}
	return root + "/" + r.Plural
}

// QualifiedName is the plural with the group: "pods", "deployments.apps".
func (r Resource) QualifiedName() string { return r.CollectionSpec().QualifiedName() }

// withDefaults returns r with its empty words filled in, and what is known of all objects in its schema.
func (r Resource) withDefaults() Resource {
	if r.Singular == "" {
		r.Singular = strings.ToLower(r.Kind)
	}
	r.Schema = withMetadata(r.Schema)
	return r
}

// answersTo reports whether name, in lower case, is one of the words for r: its plural, singular or a short name, or the plural with
// its group, or with version and group.
func (r Resource) matchesName(name string) bool {
	r = r.withDefaults()
	words := append([]string{r.Plural, r.Singular, r.QualifiedName(), strings.TrimSuffix(r.Plural+"."+r.Version+"."+r.Group, ".")}, r.ShortNames...)
	for _, w := range words {
		if w == name {
			return true
		}
	}
	return false
}

// FindResource returns the first of resources that name stands for, as people type it: "pods", "pod", "po", "deployments.apps" or
// "deployments.v1.apps", in any case.
func FindResource(resources []Resource, name string) (Resource, bool) {
	name = strings.ToLower(name)
	for _, r := range resources {
		if r.matchesName(name) {
			return r.withDefaults(), true
		}
	}
	return Resource{}, false
}

// DefaultResources returns a few of the resources that every cluster has, with the field selectors that they have there.
func DefaultResources() []Resource {
	return []Resource{
		{
			Version: "v1", Plural: "pods", Singular: "pod", ShortNames: []string{"po"}, Kind: "Pod", Namespaced: true,
			Categories: []string{"all"},
			Fields: []string{
				"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
				"status.phase", "status.podIP", "status.nominatedNodeName",
			},
			Columns: PodColumns(),
			Schema:  schema.Kubernetes("io.k8s.api.core.v1.Pod"),
		},
		{
			Version: "v1", Plural: "services", Singular: "service", ShortNames: []string{"svc"}, Kind: "Service", Namespaced: true,
			Categories: []string{"all"}, Fields: []string{"spec.clusterIP", "spec.type"}, Columns: ServiceColumns(),
			Schema: schema.Kubernetes("io.k8s.api.core.v1.Service"),
		},
		{
			Version: "v1", Plural: "configmaps", Singular: "configmap", ShortNames: []string{"cm"}, Kind: "ConfigMap", Namespaced: true,
			Columns: ConfigMapColumns(),
			Schema:  schema.Kubernetes("io.k8s.api.core.v1.ConfigMap"),
		},
		{
			Group: "apps", Version: "v1", Plural: "deployments", Singular: "deployment", ShortNames: []string{"deploy"},
			Kind: "Deployment", Namespaced: true, Categories: []string{"all"}, Columns: DeploymentColumns(),
			Scale:  &Scale{SpecReplicasPath: ".spec.replicas", DefaultReplicas: 1, StatusReplicasPath: ".status.replicas", LabelSelectorPath: ".spec.selector"},
			Schema: schema.Kubernetes("io.k8s.api.apps.v1.Deployment"),
		},
		{
			Version: "v1", Plural: "namespaces", Singular: "namespace", ShortNames: []string{"ns"}, Kind: "Namespace",
			Fields: []string{"status.phase"}, CheckName: listwatch.CheckNamespace, Columns: NamespaceColumns(),
			Schema: schema.Kubernetes("io.k8s.api.core.v1.Namespace"),
		},
		eventResource(),
	}
}
