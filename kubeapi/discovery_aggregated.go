package kubeapi

import (
	"net/http"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/watchserver"
)

// aggregatedGroup is the group in the media types of aggregated discovery, which describes
// all resources in two responses (KEP-3352).
const aggregatedGroup = "apidiscovery.k8s.io"

type discoveredGroup struct {
	Metadata struct {
		Name string `json:"name,omitempty"`
	} `json:"metadata"`
	Versions []discoveredVersion `json:"versions"`
}

type discoveredVersion struct {
	Version   string               `json:"version"`
	Resources []discoveredResource `json:"resources"`
	Freshness string               `json:"freshness"`
}

type discoveredResource struct {
	Resource         string                  `json:"resource"`
	ResponseKind     groupVersionKind        `json:"responseKind"`
	Scope            string                  `json:"scope"`
	SingularResource string                  `json:"singularResource"`
	Verbs            []string                `json:"verbs"`
	ShortNames       []string                `json:"shortNames,omitempty"`
	Categories       []string                `json:"categories,omitempty"`
	Subresources     []discoveredSubresource `json:"subresources,omitempty"`
}

type discoveredSubresource struct {
	Subresource  string           `json:"subresource"`
	ResponseKind groupVersionKind `json:"responseKind"`
	Verbs        []string         `json:"verbs"`
}

type groupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// aggregatedVersion returns the version of aggregated discovery that the client prefers. It returns
// "" if the client prefers discovery without aggregation, or both equally.
func aggregatedVersion(accept []string) (string, error) {
	ranges, err := framing.ParseAccept(accept)
	if err != nil {
		return "", err
	}
	best, version := 0, ""
	for _, m := range ranges {
		if m.Q <= best || m.Type != "application" && m.Type != "*" {
			continue
		}
		switch {
		case m.Subtype == "json" && m.Params["as"] == "APIGroupDiscoveryList" && m.Params["g"] == aggregatedGroup:
			// v2beta1 has the same members as v2.
			if v := m.Params["v"]; v == "v2" || v == "v2beta1" {
				best, version = m.Q, v
			}
		case (m.Subtype == "json" || m.Subtype == "*") && m.Params["as"] == "":
			best, version = m.Q, ""
		}
	}
	return version, nil
}

// aggregatedGroups returns the core group or all other groups.
func (h *Handler) aggregatedGroups(core bool) []discoveredGroup {
	names := h.groups()
	if core {
		names = []string{""}
	}
	groups := []discoveredGroup{}
	for _, name := range names {
		var g discoveredGroup
		g.Metadata.Name = name
		for _, version := range h.versions(name) {
			g.Versions = append(g.Versions, h.discoverVersion(name, version))
		}
		if len(g.Versions) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

func (h *Handler) discoverVersion(group, version string) discoveredVersion {
	v := discoveredVersion{Version: version, Freshness: "Current"}
	for _, r := range h.resourcesIn(group, version) {
		kind := r.groupVersionKind()
		d := discoveredResource{
			Resource: r.Plural, ResponseKind: kind, Scope: "Cluster", SingularResource: r.Singular,
			Verbs: r.verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
		}
		if r.Namespaced {
			d.Scope = "Namespaced"
		}
		for _, s := range r.subresources() {
			d.Subresources = append(d.Subresources, discoveredSubresource{s.name, s.kind, r.subresourceVerbs()})
		}
		v.Resources = append(v.Resources, d)
	}
	return v
}

func (r Resource) groupVersionKind() groupVersionKind {
	return groupVersionKind{r.Group, r.Version, r.Kind}
}

func writeAggregated(w http.ResponseWriter, r *http.Request, version string, groups []discoveredGroup) {
	mediaType := "application/json;g=" + aggregatedGroup + ";v=" + version + ";as=APIGroupDiscoveryList"
	watchserver.WriteJSON(contentTypeWriter{w, mediaType}, r, http.StatusOK, map[string]any{
		"kind": "APIGroupDiscoveryList", "apiVersion": aggregatedGroup + "/" + version, "metadata": struct{}{}, "items": groups,
	})
}

// A contentTypeWriter replaces the Content-Type of a JSON response. By this header, clients
// distinguish aggregated discovery from discovery without aggregation.
type contentTypeWriter struct {
	http.ResponseWriter
	mediaType string
}

func (t contentTypeWriter) WriteHeader(code int) {
	t.Header().Set("Content-Type", t.mediaType)
	t.ResponseWriter.WriteHeader(code)
}
