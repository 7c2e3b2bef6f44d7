package kubeapi

import (
	"net/url"
	"strings"
)

// A route is what a path names.
type route struct {
	group, version string
	plural         string
	namespace      string // empty: all, or there are none
	name           string // empty: all
	subresource    string
	watch          bool // the path is one of the /watch/ forms
}

// parseRoute reads the path of a resource, escaped as it came, so that an escaped slash stays within its segment. See "Resource
// URIs" in Kubernetes' API concepts.
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

// scoped reports whether parts begin with a namespace. /api/v1/namespaces/NAME is an object itself, and so it has subresources.
func (t *route) scoped(parts []string) bool {
	if len(parts) < 3 || parts[0] != "namespaces" {
		return false
	}
	ofNamespace := t.group == "" && len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
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
