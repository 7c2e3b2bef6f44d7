package kubeapi

import (
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
)

var (
	// everywhere are kinds that clients know in every group, and core those that they know in the core group, whatever is served there
	// (k8s.io/apimachinery/pkg/apis/meta/v1, AddToGroupVersion): an object of such a kind would be taken for something else.
	commonKinds = []string{"WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"}
	coreKinds   = []string{"Status", "List", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"}
)

// check returns an error of code Invalid where r could not be served: where its names are none, its paths lead elsewhere, or its kind means
// something else.
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
		return invalidResource(text, fmt.Sprintf("the kind %q must be letters and digits, with a capital in front", r.Kind))
	case slices.Contains(commonKinds, r.Kind), r.Group == "" && slices.Contains(coreKinds, r.Kind):
		return invalidResource(text, fmt.Sprintf("clients take the kind %s for the one that Kubernetes' API has itself", r.Kind))
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
			return invalidResource(text, fmt.Sprintf("%s, one of its paths, means something else", r.Path("ns")+path))
		}
	}
	return nil
}

// checkBeside returns an error of code Invalid where clients could not tell r from other, or the error of code AlreadyExists where both are
// at one path. As in Kubernetes, it is the group in which names must be unique.
func (r Resource) checkConflict(other Resource) error {
	if r.Group != other.Group {
		return nil
	}
	r, other = r.withDefaults(), other.withDefaults()
	if r.Plural == other.Plural {
		if r.Version == other.Version {
			return &listwatch.Error{Code: listwatch.AlreadyExists, Message: r.Path("") + " is served already"}
		}
		return nil
	}
	for _, kind := range []string{r.Kind, r.Kind + "List"} {
		if kind == other.Kind || kind == other.Kind+"List" {
			return invalidResource(r.QualifiedName(), fmt.Sprintf("the kind %s is that of %s", kind, other.QualifiedName()))
		}
	}
	words := func(r Resource) []string { return append([]string{r.Plural, r.Singular}, r.ShortNames...) }
	for _, w := range words(r) {
		if slices.Contains(words(other), w) {
			return invalidResource(r.QualifiedName(), fmt.Sprintf("%q is a word for %s", w, other.QualifiedName()))
		}
	}
	return nil
}
