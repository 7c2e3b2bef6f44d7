package remote

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
)

const (
	discoveryTimeout  = 5 * time.Second
	maxDiscoveryBytes = 1 << 20
)

// A DiscoveredResource is an entry of an APIResourceList (Kubernetes, "The Kubernetes API",
// Discovery).
type DiscoveredResource struct {
	Name, SingularName, Kind string
	Namespaced               bool
	ShortNames, Categories   []string
}

// Discover requests the properties of r from the server at base. An unknown resource is an
// error of code NotFound.
func Discover(ctx context.Context, config *tls.Config, header http.Header, base *url.URL,
	r kubeapi.Resource,
) (d DiscoveredResource, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, discoveryTimeout,
		fmt.Errorf("no response within %v", discoveryTimeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path.Dir(r.Path(""))).String(), nil)
	if err != nil {
		return d, err
	}
	request.Header = header
	carrier := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
		IdleConnTimeout: time.Second,
	}
	defer carrier.CloseIdleConnections()
	response, err := carrier.RoundTrip(request)
	if err != nil {
		return d, err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotFound {
		return d, transport.ResponseError(response)
	}
	defer response.Body.Close()
	var list struct{ Resources []DiscoveredResource }
	if response.StatusCode == http.StatusOK {
		if err := json.NewDecoder(io.LimitReader(response.Body, maxDiscoveryBytes)).Decode(&list); err != nil {
			return d, err
		}
	}
	for _, d := range list.Resources {
		if d.Name == r.Plural {
			return d, nil
		}
	}
	return d, &listwatch.Error{
		Code: listwatch.NotFound, Message: "the server has no " + r.Plural + " in " + r.APIVersion(),
	}
}

// IsNamespaced reports whether the objects of r have namespaces. If the request fails, it
// returns true, and the next request will report the problem.
func (c *Connection) IsNamespaced(ctx context.Context, base *url.URL, r kubeapi.Resource) bool {
	config, err := c.TLSConfig()
	if err != nil {
		return true
	}
	header := make(http.Header)
	if c.Token != "" {
		header.Set("Authorization", "Bearer "+c.Token)
	}
	found, err := Discover(ctx, config, header, base, r)
	return err != nil || found.Namespaced
}
