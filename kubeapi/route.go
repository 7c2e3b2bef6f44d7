package kubeapi

import (
	"net/url"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/internal/apihttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Route is the parsed path of a resource, such as /apis/apps/v1/namespaces/a/deployments/web.
type Route struct {
	Group, Version string
	Plural         string
	Namespace      string // empty for all namespaces and for cluster-scoped resources
	Name           string // empty for all objects
	Subresource    string
	Watch          bool // the path has one of the old /watch/ forms
}

// ParseRoute parses the path of a resource, and returns false for any other path. It takes the
// escaped path, so that an escaped slash stays within its segment. It does not know which resources
// exist or have namespaces. See "Resource URIs" in Kubernetes' API concepts.
func ParseRoute(escaped string) (Route, bool) {
	parts, ok := segments(escaped)
	if !ok {
		return Route{}, false
	}
	var t Route
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return Route{}, false
	}
	if parts[0] == "watch" {
		t.Watch, parts = true, parts[1:]
	}
	if t.scoped(parts) {
		t.Namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 0 || len(parts) > 3 {
		return Route{}, false
	}
	for i, to := range []*string{&t.Plural, &t.Name, &t.Subresource}[:len(parts)] {
		*to = parts[i]
	}
	return t, true
}

// scoped reports whether parts begin with a namespace. The path
// /api/v1/namespaces/NAME/status does not: it names a subresource of a Namespace object.
func (r *Route) scoped(parts []string) bool {
	if len(parts) < 3 || parts[0] != "namespaces" {
		return false
	}
	ofNamespace := r.Group == "" && len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
	return !ofNamespace
}

func segments(escaped string) ([]string, bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(escaped, "/"), "/"), "/")
	for i, p := range parts {
		s, err := url.PathUnescape(p)
		if err != nil || s == "" {
			return nil, false
		}
		parts[i] = s
	}
	return parts, true
}

// described returns the names of r for the hooks of the Server.
func (r Resource) described() apihttp.Resource {
	return apihttp.Resource{Group: r.Group, Version: r.Version, Name: r.Plural}
}

// verbs are the verbs of a resource in discovery. readVerbs are the verbs of a read-only
// resource.
var (
	verbs     = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	readVerbs = []string{"get", "list", "watch"}
)

// subresourceVerbs are the verbs of a subresource.
var subresourceVerbs = []string{"get", "patch", "update"}

func (r Resource) verbs() []string {
	switch {
	case r.isReview():
		return reviewVerbs
	case r.ReadOnly:
		return readVerbs
	}
	return verbs
}

func (r Resource) subresourceVerbs() []string {
	if r.ReadOnly {
		return subresourceVerbs[:1]
	}
	return subresourceVerbs
}

// A subresource is a part of each object of a resource, or another view of the object, at a
// path of its own.
type subresource struct {
	name string
	kind metav1.GroupVersionKind
}

func (r Resource) subresources() []subresource {
	var all []subresource
	if !r.NoStatus {
		all = append(all, subresource{"status", r.groupVersionKind()})
	}
	if r.Scale != nil {
		all = append(all, subresource{"scale", scaleResource.groupVersionKind()})
	}
	return all
}

func (r Resource) hasSubresource(name string) bool {
	return slices.ContainsFunc(r.subresources(), func(s subresource) bool { return s.name == name })
}
