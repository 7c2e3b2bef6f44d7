package kubeapi

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/schema"
)

var (
	// versionSyntax and kindSyntax are the usual forms of Kubernetes' versions ("API versioning")
	// and kinds. The text of a resource must have these forms, so that mistakes are detected.
	versionSyntax = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	kindSyntax    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	// labelSyntax is the form of a DNS label that starts with a letter (RFC 1035). Kubernetes
	// accepts any version and plural of this form, and any kind that has this form in lower case.
	labelSyntax = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// ParseResource parses a resource of the form "PLURAL.VERSION.GROUP=Kind", such as
// "widgets.v1.demo.example.com=Widget". For the core group the name ends with the version.
// The suffix ",cluster" declares a resource without namespaces. A kind of Kubernetes that
// [schema.Kubernetes] knows, such as Event of events.k8s.io/v1, gets its schema. Invalid text is an
// error of code Invalid.
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
		return Resource{}, invalidResource(s,
			fmt.Sprintf("the kind %q must consist of letters and digits and start with a capital letter", kind))
	case scope == "cluster":
		r.Namespaced = false
	case scope != "" || strings.HasSuffix(options, ","):
		return Resource{}, invalidResource(s, fmt.Sprintf("only \",cluster\" may follow the kind, not %q", ","+scope))
	}
	if err := r.validate(); err != nil {
		return Resource{}, err
	}
	group := strings.TrimSuffix(cmp.Or(r.Group, "core"), ".k8s.io")
	r.Schema = schema.Kubernetes("io.k8s.api." + group + "." + r.Version + "." + r.Kind)
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
		return Resource{}, invalidResource(s,
			fmt.Sprintf("the plural %q must be lower-case letters, digits and '-'", plural))
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
		Code: listwatch.Invalid,
		Message: fmt.Sprintf("resource %q: %s; the form is widgets.v1.demo.example.com=Widget or …=Widget,cluster", s,
			why),
	}
}

var (
	// Clients register commonKinds in every group, and coreKinds in the core group
	// (k8s.io/apimachinery/pkg/apis/meta/v1, AddToGroupVersion). They would decode an
	// object of such a kind as another type.
	commonKinds = []string{
		"WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions",
	}
	coreKinds = []string{"Status", "List", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"}
)

// validate returns an error if r cannot be served: a name or its kind is invalid, the kind is
// reserved, SharedCompression does not fit, or one of its paths has another meaning.
func (r Resource) validate() error {
	text := r.Plural + "." + r.Version
	if r.Group != "" {
		text += "." + r.Group
	}
	refuse := func(format string, args ...any) error {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("resource %q: ", text) + fmt.Sprintf(format, args...),
		}
	}
	const label = "must be lower-case letters, digits and '-', and start with a letter"
	switch {
	case !labelSyntax.MatchString(r.Plural):
		return refuse("the plural %q "+label, r.Plural)
	case r.Plural == "watch" || r.Plural == "proxy":
		return refuse("%q is reserved in paths", r.Plural)
	case !labelSyntax.MatchString(r.Version):
		return refuse("the version %q "+label, r.Version)
	case r.Group != "" && listwatch.CheckName(r.Group) != nil:
		return refuse("the group %q must be a DNS name", r.Group)
	case !labelSyntax.MatchString(strings.ToLower(r.Kind)):
		return refuse("the kind %q must consist of letters, digits and '-' and start with a letter", r.Kind)
	case slices.Contains(commonKinds, r.Kind), r.Group == "" && slices.Contains(coreKinds, r.Kind):
		return refuse("the kind %s is reserved by the Kubernetes API", r.Kind)
	}
	if err := r.SharedCompression.Check(listwatch.Description{APIVersion: r.APIVersion(), Kind: r.Kind}); err != nil {
		return err
	}
	want := Route{Group: r.Group, Version: r.Version, Plural: r.Plural}
	if r.Namespaced {
		want.Namespace = "ns"
	}
	for _, path := range []string{"", "/name", "/name/status"} {
		if path != "" {
			want.Name = "name"
		}
		if path == "/name/status" {
			want.Subresource = "status"
		}
		if got, ok := ParseRoute(r.Path("ns") + path); !ok || got != want {
			return refuse("its path %s has another meaning", r.Path("ns")+path)
		}
	}
	return nil
}

// checkConflict returns an error of code AlreadyExists if r and other have the same path.
// It returns an error of code Invalid if clients could not distinguish them: as in
// Kubernetes, names must be unique within a group.
func (r *Resource) checkConflict(other *Resource) error {
	if r.Group != other.Group {
		return nil
	}
	taken := func(format, name string) error {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf(
				"resource %q: "+format+" belongs to %s", r.QualifiedName(), name, other.QualifiedName()),
		}
	}
	if r.Plural == other.Plural {
		if r.Version == other.Version {
			return &listwatch.Error{Code: listwatch.AlreadyExists, Message: r.Path("") + " is already served"}
		}
		return nil
	}
	for _, kind := range []string{r.Kind, r.Kind + "List"} {
		if kind == other.Kind || kind == other.Kind+"List" {
			return taken("the kind %s", kind)
		}
	}
	words := func(r *Resource) []string { return append([]string{r.Plural, r.singular()}, r.ShortNames...) }
	for _, w := range words(r) {
		if slices.Contains(words(other), w) {
			return taken("the name %q", w)
		}
	}
	return nil
}
