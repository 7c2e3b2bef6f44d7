package kubeapi

import (
	"cmp"
	"maps"
	"strings"

	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Resource describes a collection served at /api or /apis. It must not be modified after
// it has been added to a [Handler].
type Resource struct {
	// Group and Version form the first part of the path. The core group is the empty
	// string.
	Group, Version string
	// Plural is the last part of the path, in lower case.
	Plural string
	// Kind is the kind of the objects.
	Kind string
	// Namespaced is true if every object is in a namespace, and false if no object is.
	Namespaced bool
	// Custom is true for custom resources. As in Kubernetes, their objects must have kind and
	// apiVersion. Updates without metadata.resourceVersion are rejected, because they could
	// overwrite changes that the writer has not seen. Strategic merge patches are rejected, too.
	Custom bool
	// Singular is the name of one object. If empty, the kind in lower case is used.
	Singular string
	// ShortNames are abbreviations for users of kubectl, such as "po".
	ShortNames []string
	// Categories are names that stand for several resources in kubectl get, such as "all".
	Categories []string
	// Fields are the paths that field selectors may use; see [store.CollectionSpec]. As in
	// Kubernetes, an absent boolean of Schema has the value false, and an absent integer the value
	// 0, unless Custom is true.
	Fields []string
	// Columns are the columns that kubectl get shows after the name. If nil, the age is
	// shown. If empty but not nil, only the name is shown.
	Columns []table.Column
	// CheckName validates the name of an object. If nil, a name must be a DNS subdomain.
	// See [store.CollectionSpec].
	CheckName func(name string) error
	// Schema describes the fields of the objects, for OpenAPI, patches, server-side apply, and
	// type checks. It need not describe the metadata. If nil, strategic merge patches are
	// rejected, as Kubernetes rejects them for custom resources.
	Schema *schema.Type
	// Complete changes an object as Kubernetes does when it decodes the object: it fills in
	// defaults, for example, or removes unknown fields. It is called for the object in the body of
	// a create or an update, for the result of a patch, and, with applied set, for the result of an
	// apply that changes a value. An apply may not have invalid nulls, and may have unknown fields
	// only in objects without properties. The managers of fields are determined afterwards: a
	// writer owns the defaults of what it has written, except by an apply. object is compact JSON
	// that may lack kind and apiVersion. If Complete is nil, objects stay as they are. Complete is
	// called concurrently.
	Complete func(object []byte, applied bool) ([]byte, error)
	// Validate returns the errors in an object that a write would store. If there are any, the
	// write is rejected with status 422. Validate replaces the type checks of Schema. object is
	// compact JSON, whose metadata may lack the members that the server sets. nulls is true for an
	// apply. As in Kubernetes, a null that the schema does not allow is an error if nulls is true,
	// and is ignored otherwise. If Validate is nil, values are not checked. Validate is called
	// concurrently.
	Validate func(object []byte, nulls bool) field.ErrorList
	// ValidateStatus replaces Validate for writes of the status subresource. It returns the errors
	// in the status of object. If nil, Validate is used.
	ValidateStatus func(object []byte, nulls bool) field.ErrorList
	// ReadOnly rejects writes with status 405. Discovery then lists only the verbs get,
	// list and watch.
	ReadOnly bool
	// NoStatus is true if the objects have no status subresource, so that status is an ordinary
	// field. Otherwise an update that has no status keeps the stored one. In custom resources, as
	// in Kubernetes, only writes to the subresource change the status.
	NoStatus bool
	// SeparateStatus is true if only writes to the status subresource change the status. In
	// Kubernetes, this also holds for built-in kinds. Custom resources need not set it.
	SeparateStatus bool
	// Scale describes the scale subresource. If nil, the objects cannot be scaled.
	Scale *Scale
	// Deletes has the rules for deletes.
	Deletes Deletion
	// Convert converts the objects between Version and OtherVersions, for objects whose managers
	// apply different versions. If nil, there are no other versions; see also [InVersion].
	Convert Converter
	// OtherVersions has the schemas of the other versions, by name. They need not be served: the
	// objects may have managers from the time when they were.
	OtherVersions map[string]*schema.Type
	// Warning is sent with each response, for example because the version is deprecated. If empty,
	// there is none. It must consist of printable ASCII characters.
	Warning string
	// NoCompression disables compression of responses for this resource.
	// [watchserver.Server.NoCompression] disables it for all resources.
	NoCompression bool
	// SharedCompression selects the watches whose events are compressed together; see
	// [watchserver.SharedCompression] for the risk. For Secrets, Add returns an error unless the
	// value is [watchserver.ShareNever].
	SharedCompression watchserver.SharedCompression
}

// A Scale describes where objects contain the values of their scale subresource: the number
// of desired replicas, the number of actual replicas, and their label selector. kubectl
// scale and autoscalers use only this subresource (Kubernetes, "Extend the Kubernetes API
// with CustomResourceDefinitions", Scale subresource). The paths consist of member names,
// each preceded by a dot.
type Scale struct {
	// SpecReplicasPath is the path of the number of desired replicas, such as
	// ".spec.replicas". An update of the scale changes this number.
	SpecReplicasPath string
	// DefaultReplicas is the number of desired replicas of an object that does not specify
	// a number. If negative, such an object has no scale: a read fails with status 500, and a
	// patch must set the number, as for custom resources in Kubernetes.
	DefaultReplicas int32
	// StatusReplicasPath is the path of the number of actual replicas, such as
	// ".status.replicas". If an object has no such member, the number is zero.
	StatusReplicasPath string
	// LabelSelectorPath is the path of the label selector of the replicas. The selector is a string
	// or a metav1.LabelSelector. If the path is empty, the scale has no selector.
	LabelSelectorPath string
}

// APIVersion returns the apiVersion of the objects, such as "v1" or "apps/v1".
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

func (r Resource) groupVersionKind() metav1.GroupVersionKind {
	return metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// CollectionSpec returns the description of r for a store.
func (r Resource) CollectionSpec() store.CollectionSpec {
	return store.CollectionSpec{
		APIVersion: r.APIVersion(), Kind: r.Kind, Plural: r.Plural, Namespaced: r.Namespaced, DropNamespace: true,
		Fields: r.Fields, FieldRules: r.FieldRules(), CheckName: r.CheckName,
		Generation: store.GenerationRule{Status: r.Custom && r.NoStatus},
	}
}

// isCustom reports whether a cluster would have r from a CustomResourceDefinition: if Custom is
// true, or if r, like a resource of the flag --resource, has no schema and a group that is not one
// of Kubernetes' own.
func (r Resource) isCustom() bool {
	return r.Custom || r.Schema == nil && strings.Contains(r.Group, ".") && !strings.HasSuffix(r.Group, ".k8s.io")
}

// rootPath returns the path of the resource's group and version: /api/v1 or /apis/apps/v1.
func (r Resource) rootPath() string {
	if r.Group == "" {
		return "/api/" + r.Version
	}
	return "/apis/" + r.Group + "/" + r.Version
}

// Path returns the path of the collection within a namespace. If namespace is empty or the
// resource is not namespaced, it returns the path of all objects.
func (r Resource) Path(namespace string) string {
	root := r.rootPath()
	if namespace != "" && r.Namespaced {
		root += "/namespaces/" + namespace
	}
	return root + "/" + r.Plural
}

// QualifiedName returns the plural with the group, such as "pods" or "deployments.apps".
func (r Resource) QualifiedName() string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

func (r *Resource) singular() string { return cmp.Or(r.Singular, strings.ToLower(r.Kind)) }

// withDefaults returns r with its default singular and with the metadata in its schema.
func (r Resource) withDefaults() Resource {
	r.Singular = r.singular()
	r.Schema = withMetadata(r.Schema)
	return r
}

// objectMeta returns the type of the metadata of every object.
func objectMeta() *schema.Type {
	return schema.Kubernetes("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
}

// withMetadata returns t with the fields that every object has, unless t declares them.
func withMetadata(t *schema.Type) *schema.Type {
	if t == nil {
		return nil
	}
	fields := map[string]schema.Field{
		"apiVersion": {Scalar: schema.String}, "kind": {Scalar: schema.String}, "metadata": {Type: objectMeta()},
	}
	maps.Copy(fields, t.Fields)
	if len(fields) == len(t.Fields) {
		return t
	}
	whole := *t
	whole.Fields = fields
	return &whole
}

// matchesName reports whether name, in lower case, is a name of r: its plural, its
// singular, a short name, or the plural with the group, with or without the version.
func (r Resource) matchesName(name string) bool {
	r = r.withDefaults()
	words := append(
		[]string{r.Plural, r.Singular, r.QualifiedName(), strings.TrimSuffix(r.Plural+"."+r.Version+"."+r.Group, ".")},
		r.ShortNames...)
	for _, w := range words {
		if w == name {
			return true
		}
	}
	return false
}

// FindResource returns the first resource in the list that has the given name, in a form that users
// of kubectl type: "pods", "pod", "po", "deployments.apps" or "deployments.v1.apps". It ignores
// case.
func FindResource(resources []Resource, name string) (Resource, bool) {
	name = strings.ToLower(name)
	for _, r := range resources {
		if r.matchesName(name) {
			return r.withDefaults(), true
		}
	}
	return Resource{}, false
}
