package kubeapi

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch/watchserver"
)

// The discovery types tell clients which resources exist (Kubernetes, "The Kubernetes API",
// API Discovery). They have the members of metav1.APIGroupList and related types.
type apiGroup struct {
	Kind             string            `json:"kind,omitempty"`
	APIVersion       string            `json:"apiVersion,omitempty"`
	Name             string            `json:"name"`
	Versions         []apiGroupVersion `json:"versions"`
	PreferredVersion apiGroupVersion   `json:"preferredVersion"`
}

type apiGroupVersion struct {
	GroupVersion string `json:"groupVersion"`
	Version      string `json:"version"`
}

type apiResource struct {
	Name         string `json:"name"`
	SingularName string `json:"singularName"`
	Namespaced   bool   `json:"namespaced"`
	// Group and Version belong to the kind. They are empty if the kind has the same group and
	// version as the resource.
	Group      string   `json:"group,omitempty"`
	Version    string   `json:"version,omitempty"`
	Kind       string   `json:"kind"`
	Verbs      []string `json:"verbs"`
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
}

// serveDiscovery serves the paths that list groups, versions and resources. found is false
// for other paths.
func (h *Handler) serveDiscovery(w http.ResponseWriter, r *http.Request) (found bool, err error) {
	parts, ok := segments(r.URL.EscapedPath())
	if !ok {
		return false, nil
	}
	var response any
	switch {
	case len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis"):
		return true, h.serveRoots(w, r, parts[0])
	case len(parts) == 2 && parts[0] == "apis":
		response, found = h.group(parts[1])
	case len(parts) == 2 && parts[0] == "api":
		response, found = h.resourceList("", parts[1])
	case len(parts) == 3 && parts[0] == "apis":
		response, found = h.resourceList(parts[1], parts[2])
	}
	if !found {
		return false, nil
	}
	if err := requireGetJSON(w, r); err != nil {
		return true, err
	}
	watchserver.WriteJSON(w, r, http.StatusOK, response)
	return true, nil
}

func requireGetJSON(w http.ResponseWriter, r *http.Request) error {
	if err := requireGet(r); err != nil {
		return err
	}
	return watchserver.RequireJSON(r.Header.Values("Accept"))
}

// serveRoots serves /api and /apis, with aggregated discovery if the client prefers it.
func (h *Handler) serveRoots(w http.ResponseWriter, r *http.Request, root string) error {
	if err := requireGet(r); err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	version, err := aggregatedVersion(r.Header.Values("Accept"))
	if err != nil {
		return err
	}
	if version != "" {
		writeAggregated(w, r, version, h.aggregatedGroups(root == "api"))
		return nil
	}
	if err := watchserver.RequireJSON(r.Header.Values("Accept")); err != nil {
		return err
	}
	if root == "api" {
		watchserver.WriteJSON(w, r, http.StatusOK, map[string]any{
			"kind": "APIVersions", "versions": h.versions(""),
			"serverAddressByClientCIDRs": []map[string]string{{"clientCIDR": "0.0.0.0/0", "serverAddress": r.Host}},
		})
		return nil
	}
	groups := []apiGroup{}
	for _, name := range h.groups() {
		if g, ok := h.group(name); ok {
			g.Kind, g.APIVersion = "", "" // a list omits them in its elements
			groups = append(groups, g)
		}
	}
	watchserver.WriteJSON(w, r, http.StatusOK, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
	return nil
}

// discovered returns the resources that discovery lists.
func (h *Handler) discovered() []Resource { return append(h.Resources(), accessReviews, rulesReviews) }

// groups returns the names of the API groups, without the core group, in the order in which
// they were added.
func (h *Handler) groups() []string {
	var names []string
	for _, s := range h.discovered() {
		if s.Group != "" && !slices.Contains(names, s.Group) {
			names = append(names, s.Group)
		}
	}
	return names
}

// versions returns the versions of a group, the preferred one first. It never returns nil.
func (h *Handler) versions(group string) []string {
	versions := []string{}
	for _, s := range h.discovered() {
		if s.Group == group && !slices.Contains(versions, s.Version) {
			versions = append(versions, s.Version)
		}
	}
	slices.SortFunc(versions, compareVersions)
	return versions
}

func (h *Handler) group(name string) (apiGroup, bool) {
	g := apiGroup{Kind: "APIGroup", APIVersion: "v1", Name: name}
	for _, v := range h.versions(name) {
		g.Versions = append(g.Versions, apiGroupVersion{name + "/" + v, v})
	}
	if name == "" || len(g.Versions) == 0 {
		return g, false
	}
	g.PreferredVersion = g.Versions[0]
	return g, true
}

// resourcesIn returns the resources of a group at a version, in the order in which they
// were added.
func (h *Handler) resourcesIn(group, version string) []Resource {
	var all []Resource
	for _, s := range h.discovered() {
		if s.Group == group && s.Version == version {
			all = append(all, s)
		}
	}
	return all
}

func (h *Handler) resourceList(group, version string) (map[string]any, bool) {
	resources := h.resourcesIn(group, version)
	if len(resources) == 0 {
		return nil, false
	}
	var list []apiResource
	for _, r := range resources {
		list = append(list, apiResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: r.verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
		})
		for _, s := range r.subresources() {
			of := apiResource{Name: r.Plural + "/" + s.name, Namespaced: r.Namespaced, Kind: s.kind.Kind, Verbs: r.subresourceVerbs()}
			if s.kind != r.groupVersionKind() {
				of.Group, of.Version = s.kind.Group, s.kind.Version
			}
			list = append(list, of)
		}
	}
	return map[string]any{
		"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": resources[0].APIVersion(), "resources": list,
	}, true
}

// compareVersions sorts versions by Kubernetes' preference: stable before beta before
// alpha, then the greater number ("CustomResourceDefinition Versioning", Version priority).
func compareVersions(a, b string) int {
	x, y := versionRank(a), versionRank(b)
	return cmp.Or(slices.Compare(y[:], x[:]), strings.Compare(a, b))
}

func versionRank(v string) (rank [3]int) {
	major, minor, pre := strings.TrimPrefix(v, "v"), "", false
	rank[0] = 3
	if major, minor, pre = strings.Cut(major, "beta"); pre {
		rank[0] = 2
	} else if major, minor, pre = strings.Cut(major, "alpha"); pre {
		rank[0] = 1
	}
	// Text that is not a number counts as zero.
	rank[1], _ = strconv.Atoi(major)
	rank[2], _ = strconv.Atoi(minor)
	return rank
}
