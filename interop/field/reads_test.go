//go:build !race

package field

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// neededLabels are labels that every kube-apiserver supports. Their values are easy to get wrong.
var neededLabels = []string{"spec.hostNetwork", "spec.unschedulable", "status.successful", "source", "status.podIP"}

// testSelectors compares lists and watches with every field selector.
func (c *cluster) testSelectors(t *testing.T) {
	selections := c.selections(t)
	t.Logf("%d selections", len(selections))
	for _, label := range neededLabels {
		if !slices.ContainsFunc(selections,
			func(s selection) bool { return strings.HasPrefix(s.selector, label+"=") }) {
			t.Errorf("no selection has the label %s", label)
		}
	}
	each(selections, requestsAtOnce, func(s selection) {
		for _, version := range []string{"", "0"} {
			c.wantSameItems(t, s, s.path, url.Values{"fieldSelector": {s.selector}, "resourceVersion": {version}})
		}
	})
	c.testWatchSelectors(t, selections)
}

// testWatchSelectors compares watches that begin before objects enter and leave the selections.
func (c *cluster) testWatchSelectors(t *testing.T, selections []selection) {
	version := c.newestVersion(t)
	c.change(t)
	watched := slices.DeleteFunc(selections, func(s selection) bool {
		return strings.Contains(s.selector, "!=") || strings.HasPrefix(s.selector, "metadata.")
	})
	each(watched, watchesAtOnce, func(s selection) {
		query := url.Values{
			"fieldSelector": {s.selector}, "resourceVersion": {version}, "watch": {"1"},
			"timeoutSeconds": {"5"},
		}
		direct, relayed := c.watchBoth(t, s.path, query)
		if diff := cmp.Diff(direct, relayed); diff != "" {
			t.Errorf("watch of %s: (-direct +relayed)\n%s", s, diff)
		}
	})
}

// testWarnings lists a deprecated resource. The relay sends the warning that the kube-apiserver
// sends.
func (c *cluster) testWarnings(t *testing.T) {
	const path = "/api/v1/endpoints?resourceVersion=0"
	direct, relayed := c.direct.request(t, path, "application/json"), c.relayed.request(t, path, "application/json")
	if direct == nil || relayed == nil {
		return
	}
	direct.Body.Close()
	relayed.Body.Close()
	want, got := direct.Header.Values("Warning"), relayed.Header.Values("Warning")
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 || relayed.Header.Get("Audit-Id") != "" {
		t.Errorf("warnings of %v: (-direct +relayed)\n%s", relayed.Header, diff)
	}
}

// newestVersion returns the newest version of the cluster.
func (c *cluster) newestVersion(t *testing.T) string {
	t.Helper()
	metadata, _ := decode(t, c.direct.get(t, "/api/v1/namespaces", nil).body)["metadata"].(object)
	return fmt.Sprint(metadata["resourceVersion"])
}

// change makes objects enter and leave the selections.
func (c *cluster) change(t *testing.T) {
	t.Helper()
	const namespace = "/api/v1/namespaces/default"
	for _, name := range []string{"changed", "removed"} {
		body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"i"}]}}`, name)
		if r := c.direct.send(t, http.MethodPost, namespace+"/pods", nil, "application/json",
			body); r.code != http.StatusCreated {
			t.Fatalf("%d %s", r.code, r.body)
		}
	}
	c.mustPatch(t, namespace+"/pods/changed/status",
		`{"status":{"phase":"Running","podIP":"10.1.1.1","podIPs":[{"ip":"10.1.1.1"}]}}`)
	c.mustPatch(t, namespace+"/pods/changed", `{"metadata":{"labels":{"a":"b"}}}`)
	c.mustPatch(t, namespace+"/pods/changed/status", `{"status":{"phase":"Failed","podIP":null,"podIPs":null}}`)
	c.direct.send(t, http.MethodDelete, namespace+"/pods/removed", url.Values{"gracePeriodSeconds": {"0"}}, "", "")
	for _, unschedulable := range []string{"true", "null"} {
		c.mustPatch(t, "/api/v1/nodes/one", `{"spec":{"unschedulable":`+unschedulable+`}}`)
	}
	c.mustPatch(t, namespace+"/replicationcontrollers/bare/status", `{"status":{"replicas":1}}`)
	c.mustPatch(t, namespace+"/services/bare", `{"spec":{"type":"NodePort"}}`)
	c.mustPatch(t, namespace+"/events/bare", `{"reason":"Changed","type":"Warning"}`)
	c.mustPatch(t, namespace+"/events/full", `{"source":null}`)
}

// watchBoth opens a watch directly and through the relay at once. It returns their events.
func (c *cluster) watchBoth(t *testing.T, path string, query url.Values) (direct, relayed []object) {
	t.Helper()
	var both sync.WaitGroup
	both.Go(func() { direct = c.direct.watch(t, path, query) })
	both.Go(func() { relayed = c.relayed.watch(t, path, query) })
	both.Wait()
	return direct, relayed
}

// watch reads the events of a watch, without bookmarks, until the watch ends.
func (e *endpoint) watch(t *testing.T, path string, query url.Values) (events []object) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.config.Host+path+"?"+query.Encode(), nil)
	if err != nil {
		t.Error(err)
		return nil
	}
	answer, err := e.client.Do(r)
	if err != nil {
		t.Errorf("%s: watch of %s: %v", e.name, r.URL, err)
		return nil
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return []object{{"status": answer.StatusCode}}
	}
	for lines := json.NewDecoder(bufio.NewReader(answer.Body)); ; {
		var event object
		if err := lines.Decode(&event); err != nil {
			return events // the end
		}
		if event["type"] != "BOOKMARK" {
			events = append(events, event)
		}
	}
}

// testNewestLists lists the newest state of every namespaced resource in turn, as garbage
// collection and the deletion of a namespace do. Meanwhile, the cluster changes. The items must be
// the same directly and through the relay.
func (c *cluster) testNewestLists(t *testing.T) {
	stop := c.startWriter(t)
	defer stop()
	all := figure{what: "newest lists of all namespaced resources in turn", factor: 2}
	fastest := map[string]*figure{}
	for range rounds {
		var direct, relayed time.Duration
		slow := false
		for _, r := range c.collections(t) {
			if !r.namespaced {
				continue
			}
			if fastest[r.name] == nil {
				fastest[r.name] = &figure{what: "newest list of " + r.name, factor: 2}
			}
			d, l := c.listNewest(t, r)
			fastest[r.name].add(d, l)
			slow = slow || !fastest[r.name].withinLimit()
			direct += d
			relayed += l
		}
		if all.add(direct, relayed); all.withinLimit() && !slow {
			break
		}
	}
	all.check(t)
	for _, f := range fastest {
		f.check(t)
	}
}

// listNewest lists the newest state of a resource directly and through the relay, and compares the
// lists. It returns the times.
func (c *cluster) listNewest(t *testing.T, r collection) (direct, relayed time.Duration) {
	t.Helper()
	path := r.inNamespace("default")
	want, got := c.direct.get(t, path, nil), c.relayed.get(t, path, nil)
	if diff := cmp.Diff(listOf(t, want), listOf(t, got)); diff != "" {
		t.Errorf("list of %s: (-direct +relayed)\n%s", r.name, diff)
	}
	return want.took, got.took
}

// listOf returns the status and the list in a response, without the version of the list.
func listOf(t *testing.T, r response) object {
	t.Helper()
	list := withTypes(decode(t, r.body))
	metadata, _ := list["metadata"].(object)
	delete(metadata, "resourceVersion")
	return object{"status": r.code, "list": list}
}

// startWriter changes an object of another namespace five times a second until stop is called.
func (c *cluster) startWriter(t *testing.T) (stop func()) {
	ended := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second / 5)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
				c.direct.send(t, http.MethodPatch, "/api/v1/namespaces/other", nil, "application/merge-patch+json",
					fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n))
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		running.Wait()
	}
}

// testLists compares lists with the parameters that clients use.
func (c *cluster) testLists(t *testing.T) {
	queries := []url.Values{
		nil,
		{"resourceVersion": {"0"}},
		{"limit": {"1"}},
		{"labelSelector": {"app=web"}},
		{"labelSelector": {"app!=web"}},
	}
	each(c.collections(t), requestsAtOnce, func(r collection) {
		for _, query := range queries {
			c.wantSameItems(t, r, r.path, query)
		}
	})
}
