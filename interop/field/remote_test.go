//go:build !race

package field

import (
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
			w, err := remote.Connect(0).Watch(t.Context(), listwatch.Query{
				Selection: listwatch.Selection{Namespace: "default"}, Bookmarks: true,
			})
			if err != nil {
				t.Errorf("%s: watch of %s: %v", e.name, r, err)
				return
			}
			defer func() { _ = w.Close() }()
			for event, err := range listwatch.All(t.Context(), w) {
				if err != nil {
					t.Errorf("%s: watch of %s: %v", e.name, r, err)
				}
				if event.Type == listwatch.Synced {
					break
				}
			}
		})
	}
}
