//go:build !race

package field

import (
	"context"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

// testNamespaces watches one namespace of each resource with our client, and waits until the watch
// has delivered the state. For some kinds, such as podcertificaterequests, a kube-apiserver does
// not support a field selector for the namespace.
func (c *cluster) testNamespaces(t *testing.T) {
	namespaced := c.collections(t)
	for _, e := range []*endpoint{c.direct, c.relayed} {
		each(namespaced, requestsAtOnce, func(r collection) {
			if !r.namespaced {
				return
			}
			remote := &client.Remote{URL: e.config.Host + r.path, HTTPClient: e.client}
			defer func() { _ = remote.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
			defer cancel()
			// With an old etcd, a kube-apiserver sends no initial events, so that the client lists.
			w, err := remote.Watch(ctx, listwatch.Query{
				Selection: listwatch.Selection{Namespace: "default"}, Bookmarks: true,
			})
			if err != nil {
				t.Errorf("%s: watch of %s: %v", e.name, r, err)
				return
			}
			defer func() { _ = w.Close() }()
			for event, err := range listwatch.All(ctx, w) {
				if err != nil {
					t.Errorf("%s: watch of %s: %v", e.name, r, err)
					break
				}
				if event.Type == listwatch.Synced {
					break
				}
			}
		})
	}
}
