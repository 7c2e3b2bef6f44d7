package kubeapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/table"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
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
	// apiVersion, an update without metadata.resourceVersion is rejected, so that no writer
	// overwrites changes that it has not seen, and so are strategic merge patches.
	Custom bool
	Names
	// Fields are the paths that field selectors may use; see [store.CollectionSpec].
	Fields []string
	// Columns are the columns that kubectl get shows after the name. If nil, the age is
	// shown. If empty but not nil, only the name is shown.
	Columns []table.Column
	Checks
	Endpoints
	Compression
}

// Names are alternative names of a [Resource] for users of kubectl.
type Names struct {
	// Singular is the name of one object. If empty, the kind in lower case is used.
	Singular   string
	ShortNames []string
	// Categories are names that stand for several resources in kubectl get, such as "all".
	Categories []string
}

// Checks are the checks of the objects of a [Resource] in writes.
type Checks struct {
	// CheckName validates the name of an object. If nil, a name must be a DNS subdomain.
	// See [store.CollectionSpec].
	CheckName func(name string) error
	// Schema describes the fields of the objects, for OpenAPI, patches, server-side apply, and
	// type checks. It need not describe the metadata. If nil, strategic merge patches are
	// rejected, as Kubernetes rejects them for custom resources.
	Schema *schema.Type
	// Validate returns the errors in an object that a write would store. If there are any, the
	// write is rejected with status 422. Validate replaces the type checks of Schema. object is
	// compact JSON, whose metadata may lack the members that the server sets. nulls is true for an
	// apply. As in Kubernetes, a null that the schema does not allow is an error if nulls is true,
	// and is ignored otherwise. If Validate is nil, values are not checked. Validate is called
	// concurrently.
	Validate func(object []byte, nulls bool) field.ErrorList
}

// Endpoints are the verbs and subresources of a [Resource].
type Endpoints struct {
	// ReadOnly rejects writes with status 405. Discovery then lists only the verbs get,
	// list and watch.
	ReadOnly bool
	// NoStatus is true if the objects have no status subresource, so that status is an ordinary
	// field. Otherwise an update that has no status keeps the stored one.
	NoStatus bool
	// Scale describes the scale subresource. If nil, the objects cannot be scaled.
	Scale *Scale
}

// Compression configures the compression of the responses of a [Resource].
type Compression struct {
	// NoCompression disables compression of responses for this resource.
	// [watchserver.Server.NoCompression] disables it for all resources.
	NoCompression bool
	// SharedCompression selects the watches whose events are compressed with the history of the
	// events before them; see [watchserver.SharedCompression] for the risk. For Secrets, Add
	// returns an error unless the value is [watchserver.ShareNever].
	SharedCompression watchserver.SharedCompression
}

// APIVersion returns the apiVersion of the objects, such as "v1" or "apps/v1".
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// CollectionSpec returns the description of r for a store.
func (r Resource) CollectionSpec() store.CollectionSpec {
	return store.CollectionSpec{
		APIVersion: r.APIVersion(), Kind: r.Kind, Plural: r.Plural, Namespaced: r.Namespaced, DropNamespace: true,
		Fields: r.Fields, CheckName: r.CheckName,
	}
}

// Path returns the path of the collection within a namespace. If namespace is empty or the
// resource is not namespaced, it returns the path of all objects.
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

// QualifiedName returns the plural with the group, such as "pods" or "deployments.apps".
func (r Resource) QualifiedName() string { return r.CollectionSpec().QualifiedName() }

// withDefaults returns r with its default singular and with the metadata in its schema.
func (r Resource) withDefaults() Resource {
	if r.Singular == "" {
		r.Singular = strings.ToLower(r.Kind)
	}
	r.Schema = withMetadata(r.Schema)
	return r
}

// matchesName reports whether name, in lower case, is a name of r: its plural, its
// singular, a short name, or the plural with the group, with or without the version.
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

var (
	// versionSyntax is the syntax of Kubernetes API versions ("API versioning").
	versionSyntax = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	kindSyntax    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// ParseResource parses a resource of the form "PLURAL.VERSION.GROUP=Kind", such as
// "widgets.v1.demo.example.com=Widget". For the core group the name ends with the version.
// The suffix ",cluster" declares a resource without namespaces. Invalid text is an error of
// code Invalid.
func ParseResource(s string) (Resource, error) {
	names, options, ok := strings.Cut(s, "=")
	if !ok {
		return Resource{}, invalidResource(s, "=Kind is missing")
	}
	kind, scope, _ := strings.Cut(options, ",")
	r, err := ParseResourceName(names)
	if err != nil {
		return Resource{}, err
	}
	r.Kind = kind
	switch {
	case !kindSyntax.MatchString(kind):
		return Resource{}, invalidResource(s, fmt.Sprintf("the kind %q must consist of letters and digits and start with a capital letter", kind))
	case scope == "cluster":
		r.Namespaced = false
	case scope != "" || strings.HasSuffix(options, ","):
		return Resource{}, invalidResource(s, fmt.Sprintf("only \",cluster\" may follow the kind, not %q", ","+scope))
	}
	if err := r.validate(); err != nil {
		return Resource{}, err
	}
	return r.withDefaults(), nil
}

// ParseResourceName parses "PLURAL.VERSION.GROUP", the full name of a resource in kubectl.
// This name does not contain the kind or the scope, so the result is namespaced and has no
// Kind.
func ParseResourceName(s string) (Resource, error) {
	plural, rest, _ := strings.Cut(s, ".")
	version, group, grouped := strings.Cut(rest, ".")
	switch {
	case listwatch.CheckNamespace(plural) != nil:
		return Resource{}, invalidResource(s, fmt.Sprintf("the plural %q must be lower-case letters, digits and '-'", plural))
	case plural == "watch" || plural == "proxy":
		return Resource{}, invalidResource(s, fmt.Sprintf("%q is reserved in paths", plural))
	case !versionSyntax.MatchString(version):
		return Resource{}, invalidResource(s, fmt.Sprintf("the version %q must look like v1 or v1beta2", version))
	case grouped && listwatch.CheckName(group) != nil:
		return Resource{}, invalidResource(s, fmt.Sprintf("the group %q must be a DNS name", group))
	}
	return Resource{Group: group, Version: version, Plural: plural, Namespaced: true}, nil
}

func invalidResource(s, why string) error {
	return &listwatch.Error{
		Code:    listwatch.Invalid,
		Message: fmt.Sprintf("resource %q: %s; the form is widgets.v1.demo.example.com=Widget or …=Widget,cluster", s, why),
	}
}

var (
	// Clients register commonKinds in every group, and coreKinds in the core group
	// (k8s.io/apimachinery/pkg/apis/meta/v1, AddToGroupVersion). They would decode an
	// object of such a kind as another type.
	commonKinds = []string{"WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"}
	coreKinds   = []string{"Status", "List", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"}
)

// validate returns an error of code Invalid if r cannot be served: because a name is
// invalid, one of its paths has another meaning, or its kind is reserved.
func (r Resource) validate() error {
	text := r.Plural + "." + r.Version
	if r.Group != "" {
		text += "." + r.Group
	}
	if _, err := ParseResourceName(text); err != nil {
		return err
	}
	switch {
	case !kindSyntax.MatchString(r.Kind):
		return invalidResource(text, fmt.Sprintf("the kind %q must consist of letters and digits and start with a capital letter", r.Kind))
	case slices.Contains(commonKinds, r.Kind), r.Group == "" && slices.Contains(coreKinds, r.Kind):
		return invalidResource(text, fmt.Sprintf("the kind %s is reserved by the Kubernetes API", r.Kind))
	}
	if err := r.SharedCompression.Check(listwatch.Description{APIVersion: r.APIVersion(), Kind: r.Kind}); err != nil {
		return err
	}
	want := route{group: r.Group, version: r.Version, plural: r.Plural}
	if r.Namespaced {
		want.namespace = "ns"
	}
	for _, path := range []string{"", "/name", "/name/status"} {
		if path != "" {
			want.name = "name"
		}
		if path == "/name/status" {
			want.subresource = "status"
		}
		if got, ok := parseRoute(r.Path("ns") + path); !ok || got != want {
			return invalidResource(text, fmt.Sprintf("its path %s has another meaning", r.Path("ns")+path))
		}
	}
	return nil
}

// checkConflict returns an error of code AlreadyExists if r and other have the same path.
// It returns an error of code Invalid if clients could not distinguish them: as in
// Kubernetes, names must be unique within a group.
func (r Resource) checkConflict(other Resource) error {
	if r.Group != other.Group {
		return nil
	}
	r, other = r.withDefaults(), other.withDefaults()
	if r.Plural == other.Plural {
		if r.Version == other.Version {
			return &listwatch.Error{Code: listwatch.AlreadyExists, Message: r.Path("") + " is already served"}
		}
		return nil
	}
	for _, kind := range []string{r.Kind, r.Kind + "List"} {
		if kind == other.Kind || kind == other.Kind+"List" {
			return invalidResource(r.QualifiedName(), fmt.Sprintf("the kind %s belongs to %s", kind, other.QualifiedName()))
		}
	}
	words := func(r Resource) []string { return append([]string{r.Plural, r.Singular}, r.ShortNames...) }
	for _, w := range words(r) {
		if slices.Contains(words(other), w) {
			return invalidResource(r.QualifiedName(), fmt.Sprintf("the name %q belongs to %s", w, other.QualifiedName()))
		}
	}
	return nil
}
