package kubeapi

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/listwatch/listwatch"
)

var (
	// versionSyntax is how Kubernetes numbers API versions ("API versioning").
	versionSyntax = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	kindSyntax    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// ParseResource reads a resource from "PLURAL.VERSION.GROUP=Kind", such as "widgets.v1.demo.example.com=Widget"; for the core
// group, which has no name, it ends with the version. ",cluster" at the end says that the objects are in no namespace. What can't
// be read is an error of code Invalid.
func ParseResource(s string) (Resource, error) {
	names, options, ok := strings.Cut(s, "=")
	if !ok {
		return Resource{}, invalidResource(s, "it has no =Kind")
	}
	kind, scope, _ := strings.Cut(options, ",")
	r, err := ParseResourceName(names)
	if err != nil {
		return Resource{}, err
	}
	r.Kind = kind
	switch {
	case !kindSyntax.MatchString(kind):
		return Resource{}, invalidResource(s, fmt.Sprintf("the kind %q must be letters and digits, with a capital in front", kind))
	case scope == "cluster":
		r.Namespaced = false
	case scope != "" || strings.HasSuffix(options, ","):
		return Resource{}, invalidResource(s, fmt.Sprintf("after the kind there may be ,cluster and not %q", ","+scope))
	}
	if err := r.validate(); err != nil {
		return Resource{}, err
	}
	return r.withDefaults(), nil
}

// ParseResourceName reads "PLURAL.VERSION.GROUP", as kubectl names a resource in full. Nothing in it tells the kind, nor whether
// there are namespaces: the result says that there are.
func ParseResourceName(s string) (Resource, error) {
	plural, rest, _ := strings.Cut(s, ".")
	version, group, grouped := strings.Cut(rest, ".")
	switch {
	case listwatch.CheckNamespace(plural) != nil:
		return Resource{}, invalidResource(s, fmt.Sprintf("the plural %q must be lower-case letters, digits and '-'", plural))
	case plural == "watch" || plural == "proxy":
		return Resource{}, invalidResource(s, fmt.Sprintf("%q has a meaning of its own in paths", plural))
	case !versionSyntax.MatchString(version):
		return Resource{}, invalidResource(s, fmt.Sprintf("the version %q must be one like v1 or v1beta2", version))
	case grouped && listwatch.CheckName(group) != nil:
		return Resource{}, invalidResource(s, fmt.Sprintf("the group %q must be a DNS name", group))
	}
	return Resource{Group: group, Version: version, Plural: plural, Namespaced: true}, nil
}

func invalidResource(s, why string) error {
	return &listwatch.Error{
		Code:    listwatch.Invalid,
		Message: fmt.Sprintf("resource %q: %s; want one like widgets.v1.demo.example.com=Widget or …=Widget,cluster", s, why),
	}
}
