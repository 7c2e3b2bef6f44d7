package kubeapi

import (
	"net/http"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/apihttp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aggregatedGroup is the group in the media types of aggregated discovery (KEP-3352). Aggregated
// discovery describes all resources in two responses.
const aggregatedGroup = apidiscovery.GroupName

// aggregatedVersion returns the version of aggregated discovery that the client prefers. It returns
// "" if the client prefers discovery without aggregation, or both equally.
func aggregatedVersion(accept []framing.MediaRange, err error) (string, error) {
	if err != nil {
		return "", err
	}
	best, version := 0, ""
	for _, m := range accept {
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
func (h *Handler) aggregatedGroups(core bool) []apidiscovery.APIGroupDiscovery {
	names := h.groups()
	if core {
		names = []string{""}
	}
	groups := []apidiscovery.APIGroupDiscovery{}
	for _, name := range names {
		g := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, version := range h.versions(name) {
			g.Versions = append(g.Versions, h.discoverVersion(name, version))
		}
		if len(g.Versions) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

func (h *Handler) discoverVersion(group, version string) apidiscovery.APIVersionDiscovery {
	v := apidiscovery.APIVersionDiscovery{Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
	for _, r := range h.resourcesIn(group, version) {
		kind := r.groupVersionKind()
		d := apidiscovery.APIResourceDiscovery{
			Resource: r.Plural, ResponseKind: &kind, Scope: apidiscovery.ScopeCluster, SingularResource: r.Singular,
			Verbs: r.verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
		}
		if r.Namespaced {
			d.Scope = apidiscovery.ScopeNamespace
		}
		for _, s := range r.subresources() {
			d.Subresources = append(d.Subresources, apidiscovery.APISubresourceDiscovery{
				Subresource: s.name, ResponseKind: &s.kind, Verbs: r.subresourceVerbs(),
			})
		}
		v.Resources = append(v.Resources, d)
	}
	return v
}

func writeAggregated(w http.ResponseWriter, r *http.Request, version string, groups []apidiscovery.APIGroupDiscovery) {
	mediaType := "application/json;g=" + aggregatedGroup + ";v=" + version + ";as=APIGroupDiscoveryList"
	apihttp.WriteJSON(contentTypeWriter{w, mediaType}, r, http.StatusOK, apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: aggregatedGroup + "/" + version},
		Items:    groups,
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
