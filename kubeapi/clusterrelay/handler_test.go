package clusterrelay

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/watchserver"
)

func TestReadsComeFromOneCache(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.create(podsPath, named("one"))
		if c.get("of-ann", podsPath); c.count("ann GET "+podsPath) != 1 {
			c.Error("the first list waits for the cache")
		}
		c.warm(podsPath)
		for range 3 {
			if body := c.get("of-ann", podsPath); !strings.Contains(body, `"name":"one"`) ||
				!strings.Contains(body, `"kind":"PodList"`) {
				c.Errorf("got %s, want the pod", body)
			}
			c.get("of-bob", podsPath+"/one?resourceVersion=0")
			c.get("of-bob", "/api/v1/pods?fieldSelector=status.phase%3DRunning")
		}
		events := c.get("of-ann", podsPath+"?watch=true&timeoutSeconds=1&resourceVersion=0")
		if !strings.Contains(events, `"type":"ADDED"`) {
			c.Errorf("got %s, want the pod as an event", events)
		}
		for request, want := range map[string]int{
			"ann GET " + podsPath: 1, "bob GET " + podsPath + "/one": 0,
			"bob GET /api/v1/pods": 0,
		} {
			if n := c.count(request); n != want {
				c.Errorf("the API server received %q %d times, want %d", request, n, want)
			}
		}
		if running := c.handler.caches.all(); len(running) != 1 {
			c.Errorf("%d caches are open, want one", len(running))
		}
	})
}

func TestOwnParametersNeedNoAPIServer(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.create(podsPath, named("one"))
		c.warm(podsPath) // a get starts no cache
		before := c.count("ann GET " + podsPath)
		const watch = "?watch=1&timeoutSeconds=1"
		for path, want := range map[string]string{
			"?fields=metadata.name":                                                            "Listwatch-Fields",
			"?resourceVersion=0&fields=metadata.name":                                          "Listwatch-Fields",
			"/one?resourceVersion=0&fields=metadata.name":                                      "Listwatch-Fields",
			watch + "&fields=metadata.name":                                                    "Listwatch-Fields",
			watch + "&conflate=250ms&resourceVersion=0":                                        "Listwatch-Conflate",
			watch + "&conflate=250ms&sendInitialEvents=true&resourceVersionMatch=NotOlderThan": "Listwatch-Conflate",
		} {
			r := c.send("of-ann", "GET", c.relayed+podsPath+path, "")
			if r.code != http.StatusOK || r.header.Get(want) == "" || !strings.Contains(r.body, `"name":"one"`) ||
				want == "Listwatch-Fields" && strings.Contains(r.body, "creationTimestamp") {
				c.Errorf("%s: got %d %s with %v, want %s", path, r.code, r.body, r.header, want)
			}
		}
		if n := c.count("ann GET "+podsPath) - before + c.count("ann GET "+podsPath+"/one"); n != 0 {
			c.Errorf("the API server received %d reads, want none", n)
		}
		if r := c.send("of-ann", "GET", c.relayed+podsPath+"?fields=a..b", ""); r.code/100 != 4 {
			c.Errorf("malformed fields: got %d %s", r.code, r.body)
		}
	})
}

func TestOtherRequestsPassThrough(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.warm(podsPath)
		if r := c.send("of-ann", "POST", c.relayed+podsPath, named("one")); r.code != http.StatusCreated {
			c.Errorf("create: got %d %s, want 201", r.code, r.body)
		}
		if r := c.send("of-ann", "PATCH", c.relayed+podsPath+"/one", `{"metadata":{"labels":{"a":"b"}}}`,
			"Content-Type", "application/merge-patch+json"); r.code != http.StatusOK {
			c.Errorf("patch: got %d %s, want 200", r.code, r.body)
		}
		const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
		for path, header := range map[string][]string{
			podsPath: {"Accept", table},
			podsPath + "?labelSelector=x": {
				"Accept",
				"application/vnd.kubernetes.protobuf,application/yaml;q=0.5,application/json;as=Table;v=v1;g=meta.k8s.io",
			},
			podsPath + "?shardSelector=x":                  nil,
			podsPath + "?fieldSelector=spec.subdomain%3Da": nil,
			podsPath + "?continue=e30":                     nil,
			podsPath + "/one/status":                       nil,
			podsPath + "/one":                              nil,
			podsPath + "/two?resourceVersion=0":            nil,
			"/api/v1":                                      nil,
			"/openapi/v3":                                  nil,
			"/nowhere":                                     nil,
			secretsPath:                                    nil,
			"/apis/coordination.k8s.io/v1/leases":          nil,
			"/apis/demo.example.com/v1/zones?fieldSelector=metadata.namespace%3Da": nil,
		} {
			want := c.send("of-ann", "GET", c.direct+path, "", header...)
			bare, _, _ := strings.Cut(path, "?")
			before := c.count("ann GET " + bare)
			got := c.send("of-ann", "GET", c.relayed+path, "", header...)
			if got.code != want.code || got.body != want.body {
				c.Errorf("%s: got %d %s, want the response of the API server: %d %s", path, got.code, got.body,
					want.code, want.body)
			}
			if n := c.count("ann GET "+bare) - before; n != 1 {
				c.Errorf("%s: %d requests reached the API server, want 1", path, n)
			}
		}
		if r := c.send("of-ann", "GET", c.relayed+podsPath, "", "Impersonate-User",
			"bob"); r.code != http.StatusForbidden ||
			!strings.Contains(r.body, "impersonation is not supported") {
			c.Errorf("impersonation: got %d %s, want the API server's refusal", r.code, r.body)
		}
	})
}

// kube-apiserver warns the readers of resources that are deprecated.
func TestWarningsReachTheReadersOfACache(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		const warning = `299 - "v1 Pod is deprecated"`
		c.change(func() { c.warning = warning })
		c.create(podsPath, named("one"))
		c.warm(podsPath)
		for _, path := range []string{
			"?resourceVersion=0", "/one?resourceVersion=0", "?watch=1&timeoutSeconds=1", "",
		} {
			r := c.send("of-ann", "GET", c.relayed+podsPath+path, "")
			if got := r.header.Values("Warning"); len(got) != 1 || got[0] != warning {
				c.Errorf("%q: got warnings %q, want one", path, got)
			}
		}
	})
}

// The API server has limits of its own, so the limits of the relay apply to what caches answer.
func TestRefusalsReachTheHooks(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.warm(podsPath)
		long := "&labelSelector=" + strings.Repeat("x", watchserver.DefaultURLBytes)
		for _, test := range []struct {
			name, path string
			outage     bool
			code       int
			refused    string
		}{
			{
				"no review", podsPath + "?resourceVersion=0", true, http.StatusServiceUnavailable,
				"the relay cannot review the rights of its clients",
			},
			{
				"long URL", podsPath + "?resourceVersion=0" + long, false, http.StatusRequestURITooLong,
				"the URL is longer than 16384 bytes",
			},
			{"long URL passed on", podsPath + "?shardSelector=x" + long, false, http.StatusRequestURITooLong, ""},
		} {
			c.change(func() { c.refused, c.outage = nil, test.outage })
			time.Sleep(2 * reviewLifetime)
			if r := c.send("of-ann", "GET", c.relayed+test.path, ""); r.code != test.code {
				c.Errorf("%s: got %d %s, want %d", test.name, r.code, r.body, test.code)
			}
			want := []string{"GET " + podsPath + ": " + test.refused}
			if test.refused == "" {
				want = nil
			}
			c.change(func() {
				if !slices.Equal(c.refused, want) {
					c.Errorf("%s: the relay has refused %q, want %q", test.name, c.refused, want)
				}
			})
		}
	})
}

func TestWritesAreVisibleToTheNextRead(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.warm(podsPath)
		for i := range 20 {
			name := fmt.Sprint("p", i)
			if r := c.send("of-ann", "POST", c.relayed+podsPath, named(name)); r.code != http.StatusCreated {
				c.Fatalf("create: got %d %s, want 201", r.code, r.body)
			}
			for _, query := range []string{
				"?resourceVersion=0", "", "/" + name + "?resourceVersion=0",
				"?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3D" + name,
			}[:3+1/(i+1)] {
				if body := c.get("of-ann", podsPath+query); !strings.Contains(body, `"name":"`+name+`"`) {
					c.Fatalf("%s: got %s, want the written pod %s", query, body, name)
				}
			}
			if r := c.send("of-ann", "DELETE", c.relayed+podsPath+"/"+name, ""); r.code != http.StatusOK {
				c.Fatalf("delete: got %d %s, want 200", r.code, r.body)
			}
			if body := c.get("of-ann", podsPath+"?resourceVersion=0"); strings.Contains(body, `"name":"`+name+`"`) {
				c.Fatalf("got %s, want no deleted pod", body)
			}
		}
	})
}

// A renewal reaches the API server, and readers of the cache see nothing of it. They see the end of
// the object.
func TestRenewalsPassThrough(t *testing.T) {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/a/leases"
	withCluster(t, Options{}, func(c *cluster) {
		c.warm(leases)
		if r := c.send("of-ann", "POST", c.relayed+leases, named("agent")); r.code != http.StatusCreated {
			c.Fatalf("create: got %d %s, want 201", r.code, r.body)
		}
		before := c.get("of-ann", leases+"/agent?resourceVersion=0")
		for range 5 {
			time.Sleep(leaseTTL * 2 / 3)
			r := c.send("of-ann", "PATCH", c.relayed+leases+"/agent", "{}", "Content-Type",
				"application/merge-patch+json")
			if r.code != http.StatusOK {
				c.Fatalf("renew: got %d %s, want 200", r.code, r.body)
			}
			if got := c.get("of-ann", leases+"/agent?resourceVersion=0"); got != before {
				c.Errorf("after a renewal: got %s, want %s", got, before)
			}
		}
		time.Sleep(leaseTTL + 2*time.Second)
		r := c.send("of-ann", "GET", c.relayed+leases+"/agent?resourceVersion=0", "")
		if r.code != http.StatusNotFound {
			c.Errorf("after the TTL: got %d %s, want 404", r.code, r.body)
		}
	})
}

// While other resources change, an informer of many objects waits for a probe, so that the API
// server need not send all of them again.
func TestManyInitialEventsComeFromTheCache(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		const pods = 101
		for i := range pods {
			c.create(podsPath, named(fmt.Sprint("pod-", i)))
		}
		c.warm(podsPath)
		c.create(widgetsPath, named("one"))
		events := c.get("of-ann", podsPath+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"+
			"&allowWatchBookmarks=true&timeoutSeconds=10")
		if n := strings.Count(events, `"type":"ADDED"`); n != pods || !strings.Contains(events, "initial-events-end") {
			t.Errorf("got %d initial events, want %d and their end: %.300s", n, pods, events)
		}
		// The relay lists the version of all pods, and would list the pods of the namespace.
		if n := c.count("relay GET " + podsPath); n != 0 {
			t.Errorf("the API server received %d lists of the relay, want none", n)
		}
	})
}
