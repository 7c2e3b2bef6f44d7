//go:build !race

package field

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// listForms are the forms of lists in Protobuf: of whole objects, and of their metadata.
var listForms = []string{protobufType, protobufType + partialList}

// uncached are the resources that the relay does not cache by default.
var uncached = []string{"/api/v1/secrets", "/apis/coordination.k8s.io/v1/leases"}

// compareLists compares lists of every resource byte for byte, except for custom resources, which
// have no Protobuf. A cache must answer.
func (c *cluster) compareLists(t *testing.T) {
	exact := "resourceVersionMatch=Exact&resourceVersion=" + c.newestVersion(t)
	each(c.collections(t), requestsAtOnce, func(r collection) {
		if slices.Contains(uncached, r.path) || strings.Contains(r.path, ".example.com/") {
			return
		}
		for _, accept := range listForms {
			for _, query := range []string{exact, exact + "&labelSelector=app%3Dweb", ""} {
				c.compareList(t, r.path+"?"+query, accept)
			}
		}
	})
}

// compareList compares a list. If the list is one of the newest state, the kube-apiserver must send
// the same list before and after the relay does.
func (c *cluster) compareList(t *testing.T, path, accept string) {
	t.Helper()
	for range rounds {
		before, _ := c.direct.list(t, path, accept)
		relayed, answered := c.relayed.list(t, path, accept)
		after, _ := c.direct.list(t, path, accept)
		if !bytes.Equal(before, after) {
			continue // the cluster has changed
		}
		if answered.Get("Audit-Id") != "" {
			t.Errorf("%s as %s: the kube-apiserver has responded instead of a cache", path, accept)
		}
		if !bytes.Equal(before, relayed) {
			t.Errorf("%s as %s: the relay sends %d bytes, want %d:\n%q\n%q", path, accept, len(relayed), len(before),
				relayed[:min(len(relayed), 400)], before[:min(len(before), 400)])
		}
		return
	}
	t.Errorf("%s as %s: the cluster changes all the time", path, accept)
}

// list returns the body and the header of a list.
func (e *endpoint) list(t *testing.T, path, accept string) ([]byte, http.Header) {
	t.Helper()
	answer := e.request(t, path, accept)
	if answer == nil {
		return nil, nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != protobufType {
		t.Errorf("%s: %s as %s: %s, %v: %.200q", e.name, path, accept, answer.Status, err, body)
	}
	return body, answer.Header
}
