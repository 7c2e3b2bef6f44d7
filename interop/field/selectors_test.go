//go:build !race

package field

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
)

// labels are field labels of built-in kinds. A kube-apiserver refuses the labels that a kind does
// not have.
var labels = []string{
	"metadata.name", "metadata.namespace", "action", "involvedObject.apiVersion", "involvedObject.fieldPath",
	"involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.resourceVersion",
	"involvedObject.uid", "reason", "regarding.apiVersion", "regarding.fieldPath", "regarding.kind", "regarding.name",
	"regarding.namespace", "regarding.resourceVersion", "regarding.uid", "reportingComponent", "reportingController",
	"source", "source.component", "spec.clusterIP", "spec.driver", "spec.host", "spec.hostNetwork", "spec.nodeName",
	"spec.podName", "spec.replicas", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
	"spec.signerName", "spec.type", "spec.unschedulable", "status.nominatedNodeName", "status.phase", "status.podIP",
	"status.podIPs", "status.replicas", "status.successful", "type",
}

// Each label is compared with values and with the values that the objects have. The labels of the
// metadata, which almost every kind has, are compared only with metadataValues.
var (
	values         = []string{"", "false", "true", "0", "1", "2", "one", "kubelet", "Pending", "Active", "10.1.1.1"}
	metadataValues = []string{"", "full", "default", "other"}
)

// requestsAtOnce is the number of requests that are sent at once, and watchesAtOnce the number of
// watches that are open at once.
const (
	requestsAtOnce = 8
	watchesAtOnce  = 300
)

// A collection is a resource that can be listed and watched.
type collection struct {
	name       string // such as jobs in batch/v1
	path       string // of all objects
	namespaced bool
}

func (c collection) String() string { return c.name }

// inNamespace returns the path of the objects in a namespace.
func (c collection) inNamespace(namespace string) string {
	i := strings.LastIndex(c.path, "/")
	return c.path[:i] + "/namespaces/" + namespace + c.path[i:]
}

// collections returns the resources that the kube-apiserver lists and watches.
func (c *cluster) collections(t *testing.T) (all []collection) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c.direct.config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		prefix := "/apis/"
		if list.GroupVersion == "v1" {
			prefix = "/api/"
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") {
				all = append(all, collection{
					r.Name + " in " + list.GroupVersion,
					prefix + list.GroupVersion + "/" + r.Name, r.Namespaced,
				})
			}
		}
	}
	return all
}

// populate creates the objects of testdata through the relay, and sets parts of their status.
func (c *cluster) populate(t *testing.T) {
	t.Helper()
	c.relayed.kubectl(t, "", "create", "-f", "testdata/objects.yaml")
	if c.direct.get(t, "/apis/resource.k8s.io/v1", nil).code == http.StatusOK {
		c.relayed.kubectl(t, "", "create", "-f", "testdata/resourceslices.yaml")
	}
	for path, status := range map[string]string{
		"/api/v1/namespaces/default/pods/full":                   `{"phase":"Running","podIP":"10.1.1.1","podIPs":[{"ip":"10.1.1.1"}]}`,
		"/api/v1/namespaces/default/pods/bare":                   `{"nominatedNodeName":"one"}`,
		"/api/v1/namespaces/default/replicationcontrollers/full": `{"replicas":2}`,
		"/apis/apps/v1/namespaces/default/replicasets/full":      `{"replicas":1}`,
		"/apis/batch/v1/namespaces/default/jobs/full":            `{"succeeded":1}`,
		"/apis/apps/v1/namespaces/default/deployments/bare":      `{"replicas":1}`,
		"/apis/apps/v1/namespaces/default/statefulsets/bare":     `{"replicas":1}`,
	} {
		c.mustPatch(t, path+"/status", `{"status":`+status+`}`)
	}
}

// mustPatch sends a merge patch to the kube-apiserver.
func (c *cluster) mustPatch(t *testing.T, path, patch string) {
	t.Helper()
	r := c.direct.send(t, http.MethodPatch, path, nil, "application/merge-patch+json", patch)
	if r.code != http.StatusOK {
		t.Fatalf("PATCH %s: %d %s", path, r.code, r.body)
	}
}

// A selection is a collection with a field selector that the kube-apiserver supports.
type selection struct {
	collection
	selector string
}

func (s selection) String() string { return fmt.Sprintf("%s %q", s.name, s.selector) }

// selections returns the selections to compare: every supported label with every value, also those
// of the objects. It fails the test if the relay supports another label.
func (c *cluster) selections(t *testing.T) (all []selection) {
	t.Helper()
	var mu sync.Mutex
	each(c.collections(t), requestsAtOnce, func(r collection) {
		items := object{"items": c.items(t, c.direct, r.path, nil)}
		for _, label := range labels {
			query := url.Values{"fieldSelector": {label + "=x"}}
			direct, relayed := c.direct.get(t, r.path, query), c.relayed.get(t, r.path, query)
			if direct.code != relayed.code {
				t.Errorf("%s: field label %s: the relay responds with %d, want %d: %s", r.name, label, relayed.code,
					direct.code, relayed.body)
			}
			if direct.code != http.StatusOK {
				continue
			}
			tried := metadataValues
			if !strings.HasPrefix(label, "metadata.") {
				tried = slices.Concat(values, valuesOf(items, label))
			}
			mu.Lock()
			for _, value := range tried {
				all = append(all, selection{r, label + "=" + value}, selection{r, label + "!=" + value})
			}
			mu.Unlock()
		}
	})
	slices.SortFunc(all, func(a, b selection) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(all, func(a, b selection) bool { return a.String() == b.String() })
}

// valuesOf returns the strings that the objects of a list have at a path.
func valuesOf(list object, path string) (found []string) {
	for _, item := range list["items"].([]any) {
		var value any = item
		for name := range strings.SplitSeq(path, ".") {
			members, _ := value.(object)
			value = members[name]
		}
		if text, ok := value.(string); ok {
			found = append(found, text)
		}
	}
	return found
}

// items lists objects, which must succeed, and returns them.
func (c *cluster) items(t *testing.T, e *endpoint, path string, query url.Values) []any {
	t.Helper()
	r := e.get(t, path, query)
	if r.code != http.StatusOK {
		t.Errorf("%s: GET %s?%s: %d %s", e.name, path, query.Encode(), r.code, r.body)
		return nil
	}
	items, _ := withTypes(decode(t, r.body))["items"].([]any)
	return items
}

// withTypes adds the apiVersion and the kind to the items of a list. The relay sends them, and a
// kube-apiserver omits them unless the list has custom resources.
func withTypes(list object) object {
	items, _ := list["items"].([]any)
	for _, item := range items {
		if item, ok := item.(object); ok {
			kind, _ := list["kind"].(string)
			item["apiVersion"], item["kind"] = list["apiVersion"], strings.TrimSuffix(kind, "List")
		}
	}
	return list
}

// attempts is the number of times that a list is compared, because objects of Kubernetes itself,
// such as its leases, may change between two reads.
const attempts = 3

// wantSameItems lists objects directly and through the relay, and requires that they are the same.
func (c *cluster) wantSameItems(t *testing.T, what fmt.Stringer, path string, query url.Values) {
	t.Helper()
	var diff string
	for range attempts {
		if diff = cmp.Diff(c.items(t, c.direct, path, query), c.items(t, c.relayed, path, query)); diff == "" {
			return
		}
	}
	t.Errorf("list of %v with %q: (-direct +relayed)\n%s", what, query.Encode(), diff)
}

// each calls f for all values, n at a time.
func each[T any](values []T, n int, f func(T)) {
	var wg sync.WaitGroup
	next := make(chan T)
	for range n {
		wg.Go(func() {
			for v := range next {
				f(v)
			}
		})
	}
	for _, v := range values {
		next <- v
	}
	close(next)
	wg.Wait()
}
