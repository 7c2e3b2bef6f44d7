package kubeapi

import (
	"net/url"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/internal/apihttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A route is the parsed path of a resource.
type route struct {
	group, version string
	plural         string
	namespace      string // empty for all namespaces and for cluster-scoped resources
	name           string // empty for all objects
	subresource    string
	watch          bool // the path has one of the old /watch/ forms
}

// parseRoute parses the path of a resource. It takes the escaped path, so that an escaped
// slash stays within its segment. See "Resource URIs" in Kubernetes' API concepts.
func parseRoute(escaped string) (route, bool) {
	parts, ok := segments(escaped)
	if !ok {
		return route{}, false
	}
	var t route
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.group, t.version, parts = parts[1], parts[2], parts[3:]
	default:
		return route{}, false
	}
	if parts[0] == "watch" {
		t.watch, parts = true, parts[1:]
	}
	if t.scoped(parts) {
		t.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 0 || len(parts) > 3 {
		return route{}, false
	}
	for i, to := range []*string{&t.plural, &t.name, &t.subresource}[:len(parts)] {
		*to = parts[i]
	}
	return t, true
}

// scoped reports whether parts begin with a namespace. The path
// /api/v1/namespaces/NAME/status does not: it names a subresource of a Namespace object.
func (r *route) scoped(parts []string) bool {
	if len(parts) < 3 || parts[0] != "namespaces" {
		return false
	}
	ofNamespace := r.group == "" && len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
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
