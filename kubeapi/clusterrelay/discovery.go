package clusterrelay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/transport"
	apidiscovery "k8s.io/api/apidiscovery/v2"
)

// requestTimeout limits the time of a request that the relay makes for itself.
const requestTimeout = 5 * time.Second

// maxResponseBytes limits the size of a response to such a request.
const maxResponseBytes = 64 << 20

// A caller makes the relay's own requests to the API server.
type caller struct {
	base   *url.URL
	client *http.Client // adds the relay's credentials
}

func newCaller(o *Options) *caller {
	return &caller{o.URL, transport.HTTPClient(&credentials{o.Network.HTTPTransport(protocols(true)), o.Header})}
}

// credentials is a RoundTripper that adds the credentials of the relay.
type credentials struct {
	*http.Transport
	header func(ctx context.Context, refresh bool) (http.Header, error) // may be nil
}

// RoundTrip implements [http.RoundTripper].
func (c *credentials) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.header != nil {
		header, err := c.header(r.Context(), false)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		maps.Copy(r.Header, header)
	}
	return c.Transport.RoundTrip(r)
}

// call sends a request for path, which may have a query, with body as JSON if it is not nil, and
// decodes the response to result.
func (c *caller) call(ctx context.Context, method, path, accept string, body, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no response within %v", requestTimeout))
	defer cancel()
	path, query, _ := strings.Cut(path, "?")
	at := c.base.JoinPath(path)
	at.RawQuery = query
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(sent))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", accept)
	if body != nil {
		r.Header.Set("Content-Type", jsonType)
	}
	response, err := c.client.Do(r)
	if err != nil {
		return unreachable(err)
	}
	if response.StatusCode/100 != 2 {
		return transport.ResponseError(response)
	}
	defer response.Body.Close()
	return json.NewDecoder(io.LimitReader(response.Body, maxResponseBytes)).Decode(result)
}

// unreachable returns the error for a client if the API server does not respond. err may be nil.
func unreachable(err error) error {
	return &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the relay cannot reach the API server", Err: err,
		Details: &listwatch.Details{RetryAfter: time.Second},
	}
}

const jsonType = "application/json"

// aggregated is the media type of aggregated discovery (Kubernetes, "The Kubernetes API",
// Aggregated discovery).
const aggregated = jsonType + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// A resourceID identifies a resource of an API server.
type resourceID struct{ group, version, plural string }

func idOf(r kubeapi.Resource) resourceID { return resourceID{r.Group, r.Version, r.Plural} }

// A cacheID identifies a cache: a resource in one encoding, which is nil for JSON.
type cacheID struct {
	resourceID
	encoding listwatch.Encoding
}

// discover returns the resources of the API server that can be listed and watched. It omits the
// resources of aggregated APIs, because other servers serve them.
func (c *caller) discover(ctx context.Context) (map[resourceID]kubeapi.Resource, error) {
	elsewhere, err := c.aggregatedVersions(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[resourceID]kubeapi.Resource)
	for _, path := range []string{"api", "apis"} {
		var list apidiscovery.APIGroupDiscoveryList
		err := c.call(ctx, http.MethodGet, path, aggregated, nil, &list)
		if path == "api" && listwatch.CodeOf(err) == listwatch.NotFound {
			continue // a server of custom resources only
		}
		if err != nil {
			return nil, fmt.Errorf("discovery at /%s: %w", path, err)
		}
		if list.Kind != "APIGroupDiscoveryList" {
			return nil, fmt.Errorf("discovery at /%s: got %q instead of an APIGroupDiscoveryList; "+
				"the relay needs Kubernetes 1.30 or newer", path, list.Kind)
		}
		addTo(all, list.Items, elsewhere)
	}
	return all, nil
}

// addTo adds the resources of groups that can be listed and watched to all.
func addTo(
	all map[resourceID]kubeapi.Resource, groups []apidiscovery.APIGroupDiscovery, elsewhere map[groupVersion]bool,
) {
	for _, group := range groups {
		for _, v := range group.Versions {
			if elsewhere[groupVersion{group.Name, v.Version}] {
				continue
			}
			for _, d := range v.Resources {
				if !slices.Contains(d.Verbs, "list") || !slices.Contains(d.Verbs, "watch") || d.ResponseKind == nil {
					continue
				}
				r := kubeapi.Resource{
					Group: group.Name, Version: v.Version, Plural: d.Resource, Kind: d.ResponseKind.Kind,
					Namespaced: d.Scope == apidiscovery.ScopeNamespace,
				}
				r.Fields, r.Schema = knownFields(r)
				all[idOf(r)] = r
			}
		}
	}
}

// knownFields returns the known paths that field selectors of r may use in addition to the name and
// the namespace, and the schema with their types.
func knownFields(r kubeapi.Resource) ([]string, *schema.Type) {
	for _, known := range kubeapi.DefaultResources() {
		if known.Group == r.Group && known.Version == r.Version && known.Plural == r.Plural {
			return known.Fields, known.Schema
		}
	}
	return nil, nil
}

// sizeSample is the number of objects from whose size the size of all is estimated.
const sizeSample = 100

// size estimates the size of all objects of r in an encoding.
func (c *caller) size(ctx context.Context, r kubeapi.Resource, e listwatch.Encoding) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	remote := &client.Remote{
		URL: c.base.JoinPath(r.Path("")).String(), HTTPClient: c.client, Framings: framingsOf(e),
		MaxListBytes: maxResponseBytes,
	}
	page, err := remote.List(ctx, listwatch.Query{Limit: sizeSample})
	if err != nil || len(page.Items) == 0 {
		return 0, err
	}
	size := int64(0)
	for _, o := range page.Items {
		size += int64(len(o.Data))
	}
	n := int64(len(page.Items))
	return size / n * (n + int64(max(page.Remaining, 0))), nil
}

type groupVersion struct{ group, version string }

// aggregatedVersions returns the versions of groups that the API server passes on to other servers
// (Kubernetes, "Kubernetes API Aggregation Layer").
func (c *caller) aggregatedVersions(ctx context.Context) (map[groupVersion]bool, error) {
	var list struct {
		Items []struct {
			Spec struct {
				Group, Version string
				Service        *struct{}
			}
		}
	}
	err := c.call(ctx, http.MethodGet, "apis/apiregistration.k8s.io/v1/apiservices", jsonType, nil, &list)
	if err != nil && listwatch.CodeOf(err) != listwatch.NotFound {
		return nil, fmt.Errorf("list of the aggregated APIs: %w", err)
	}
	all := make(map[groupVersion]bool)
	for _, s := range list.Items {
		if s.Spec.Service != nil {
			all[groupVersion{s.Spec.Group, s.Spec.Version}] = true
		}
	}
	return all, nil
}
