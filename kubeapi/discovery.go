package kubeapi

import (
	"net/http"
	"slices"

	"github.com/listwatch/listwatch/internal/apihttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// serveDiscovery serves the paths that list groups, versions and resources. found is false
// for other paths.
func (h *Handler) serveDiscovery(w http.ResponseWriter, r *http.Request, _ *apihttp.Admitted) (found bool, err error) {
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
	if err := requireGetJSON(r); err != nil {
		return true, err
	}
	apihttp.WriteJSON(w, r, http.StatusOK, response)
	return true, nil
}

func requireGetJSON(r *http.Request) error {
	if err := requireGet(r); err != nil {
		return err
	}
	return apihttp.RequireJSON(apihttp.AcceptOf(r))
}

// serveRoots serves /api and /apis, with aggregated discovery if the client prefers it.
func (h *Handler) serveRoots(w http.ResponseWriter, r *http.Request, root string) error {
	if err := requireGet(r); err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	aggregated, err := aggregatedVersion(apihttp.AcceptOf(r))
	if err != nil {
		return err
	}
	if aggregated != "" {
		writeAggregated(w, r, aggregated, h.aggregatedGroups(root == "api"))
		return nil
	}
	if err := apihttp.RequireJSON(apihttp.AcceptOf(r)); err != nil {
		return err
	}
	if root == "api" {
		apihttp.WriteJSON(w, r, http.StatusOK, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: h.versions(""),
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
				{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host},
			},
		})
		return nil
	}
	list := metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{},
	}
	for _, name := range h.groups() {
		if g, ok := h.group(name); ok {
			g.TypeMeta = metav1.TypeMeta{} // a list omits it in its elements
			list.Groups = append(list.Groups, g)
		}
	}
	apihttp.WriteJSON(w, r, http.StatusOK, list)
	return nil
}

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
	slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return versions
}

func (h *Handler) group(name string) (metav1.APIGroup, bool) {
	g := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, v := range h.versions(name) {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
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
			all = append(all, *s)
		}
	}
	return all
}

func (h *Handler) resourceList(group, version string) (metav1.APIResourceList, bool) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, r := range h.resourcesIn(group, version) {
		list.GroupVersion = r.APIVersion()
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: r.verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
		})
		for _, s := range r.subresources() {
			of := metav1.APIResource{
				Name: r.Plural + "/" + s.name, Namespaced: r.Namespaced, Kind: s.kind.Kind, Verbs: r.subresourceVerbs(),
			}
			if s.kind != r.groupVersionKind() {
				of.Group, of.Version = s.kind.Group, s.kind.Version
			}
			list.APIResources = append(list.APIResources, of)
		}
	}
	return list, len(list.APIResources) > 0
}
