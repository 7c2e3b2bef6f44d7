package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/listwatch/listwatch/kubeapi"
)

const (
	// scopeTime is how long a server may take to say what it has.
	scopeTime = 5 * time.Second
	// scopeBytes is how much it may say.
	scopeBytes = 1 << 20
)

// namespaced asks the server at base whether the objects of r, whose name says no more than where they are, are in namespaces. They are
// where it can't tell: what is wrong with the server shows when they are listed.
func (c *connection) namespaced(ctx context.Context, base *url.URL, r kubeapi.Resource) bool {
	config, err := c.tlsConfig()
	if err != nil {
		return true
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, scopeTime)
	defer cancel()
	root := base.JoinPath(r.Path(""), "..").String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, root, nil)
	if err != nil {
		return true
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return true
	}
	defer response.Body.Close()
	// An APIResourceList (Kubernetes, "The Kubernetes API", Discovery).
	var list struct {
		Resources []struct {
			Name       string
			Namespaced bool
		}
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, scopeBytes)).Decode(&list) != nil {
		return true
	}
	for _, found := range list.Resources {
		if found.Name == r.Plural {
			return found.Namespaced
		}
	}
	return true
}
