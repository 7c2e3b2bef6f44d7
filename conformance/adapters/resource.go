package adapters

import (
	"regexp"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
)

// A resource identifies a resource of the Kubernetes API, such as configmaps.
type resource struct {
	group, version, plural string // group is empty for the core group
	kind                   string
	namespaced             bool
}

func (r resource) apiVersion() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

// apiPath returns the path of the API version that the resource belongs to.
func (r resource) apiPath() string {
	if r.group == "" {
		return "/api/" + r.version
	}
	return "/apis/" + r.group + "/" + r.version
}

// path returns the path of the objects in a namespace, or of all objects if the namespace is empty.
func (r resource) path(namespace string) string {
	if namespace == "" || !r.namespaced {
		return r.apiPath() + "/" + r.plural
	}
	return r.apiPath() + "/namespaces/" + namespace + "/" + r.plural
}

// String returns "PLURAL.GROUP", or only the plural for the core group.
func (r resource) String() string {
	if r.group == "" {
		return r.plural
	}
	return r.plural + "." + r.group
}

// wellKnownResources lists the resources that have short names.
var wellKnownResources = []struct {
	resource resource
	words    []string
}{
	{resource{version: "v1", plural: "pods", namespaced: true}, []string{"pods", "pod", "po"}},
	{resource{version: "v1", plural: "services", namespaced: true}, []string{"services", "service", "svc"}},
	{resource{version: "v1", plural: "configmaps", namespaced: true}, []string{"configmaps", "configmap", "cm"}},
	{resource{version: "v1", plural: "namespaces"}, []string{"namespaces", "namespace", "ns"}},
	{resource{version: "v1", plural: "events", namespaced: true}, []string{"events", "event", "ev"}},
	{
		resource{group: "apps", version: "v1", plural: "deployments", namespaced: true},
		[]string{"deployments", "deployment", "deploy", "deployments.apps"},
	},
}

var versionSyntax = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

// parseResource parses a short name from wellKnownResources, or a full name in kubectl's
// form "PLURAL.VERSION.GROUP". The result has no kind.
func parseResource(name string) (resource, error) {
	for _, known := range wellKnownResources {
		if slices.Contains(known.words, strings.ToLower(name)) {
			return known.resource, nil
		}
	}
	plural, rest, _ := strings.Cut(name, ".")
	version, group, hasGroup := strings.Cut(rest, ".")
	if listwatch.CheckNamespace(plural) != nil || !versionSyntax.MatchString(version) ||
		hasGroup && listwatch.CheckName(group) != nil {
		return resource{}, invalidf("resource %q: want one like configmaps or widgets.v1.demo.example.com", name)
	}
	return resource{group: group, version: version, plural: plural, namespaced: true}, nil
}
