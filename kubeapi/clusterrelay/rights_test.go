package clusterrelay

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/watchserver"
)

// byNamespace lets ann read the namespace a, bob the namespace b, and carl only the pod "own" of a.
func byNamespace(u watchserver.User, a access) bool {
	switch u.Name {
	case "ann":
		return a.namespace == "a"
	case "bob":
		return a.namespace == "b"
	}
	return u.Name == "carl" && a.namespace == "a" && a.name == "own"
}

// marker is part of everything that only ann may see.
const marker = "marker"

// withTenants calls f with a cluster in which each user may read one namespace. The cache of pods
// holds all of them.
func withTenants(t *testing.T, f func(c *cluster)) {
	t.Helper()
	withCluster(t, Options{}, func(c *cluster) {
		for _, name := range []string{"marker-1", "marker-2", "own"} {
			c.create(podsPath,
				`{"metadata":{"name":"`+name+
					`","labels":{"app":"marker"},"annotations":{"x":"marker"}},"spec":{"nodeName":"marker"}}`)
		}
		c.create("/api/v1/namespaces/b/pods", `{"metadata":{"name":"b-1","labels":{"app":"b"}}}`)
		c.change(func() {
			c.users["of-carl"], c.allowed = "carl", byNamespace
		})
		for _, query := range []string{"", "?limit=1", "?watch=true&timeoutSeconds=1"} {
			if !strings.Contains(c.get("of-ann", podsPath+query), marker) {
				c.Fatal("ann does not see her own pods")
			}
		}
		if len(c.handler.caches.all()) != 1 {
			c.Fatal("ann's reads have not started a cache")
		}
		f(c)
	})
}

func TestNobodySeesMoreThanTheServerShows(t *testing.T) {
	withTenants(t, func(c *cluster) {
		page := c.get("of-ann", podsPath+"?limit=1")
		_, token, _ := strings.Cut(page, `"continue":"`)
		token, _, _ = strings.Cut(token, `"`)
		if token == "" {
			c.Fatalf("got %s, want a page with a continue token", page)
		}
		var paths []string
		for _, scope := range []string{
			"/api/v1/pods", podsPath, podsPath + "/marker-1", "/api/v1/watch/pods", "/api/v1/watch/namespaces/a/pods",
			"/api/v1/namespaces/b/pods", "/api/v1/namespaces/b%2F..%2Fa/pods", "/api/v1/namespaces/b/../a/pods",
			"/api/v1/namespaces/b/pods/marker-1", "/api/v1/namespaces/b/pods/..%2F..%2Fa%2Fpods%2Fmarker-1",
			"//api/v1/namespaces/a/pods", podsPath + "/",
		} {
			for _, query := range []string{
				"", "labelSelector=app%3Dmarker", "fieldSelector=metadata.name%3Dmarker-1",
				"fieldSelector=metadata.namespace%3Da",
				"fieldSelector=spec.nodeName%3Dmarker", "fieldSelector=metadata.name%3Down", "limit=1",
				"limit=1&continue=" + token, "resourceVersion=0",
				"namespace=a", "resourceVersion=1&resourceVersionMatch=NotOlderThan",
				"fieldSelector=metadata.namespace%3Db&fieldSelector=",
			} {
				paths = append(paths, scope+"?"+query,
					scope+"?watch=true&timeoutSeconds=1&allowWatchBookmarks=true&"+query,
					scope+"?watch=true&timeoutSeconds=1&resourceVersion=1&"+query)
			}
		}
		headers := [][]string{
			nil,
			{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"},
			{
				"Accept",
				"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
			},
			{"Accept", "text/event-stream", "Last-Event-ID", "1"},
			{"X-Remote-User", "ann"},
			{"Impersonate-User", "ann"},
			{"X-Forwarded-User", "ann", "X-Remote-Group", "system:masters"},
		}
		for _, path := range paths {
			for _, header := range headers {
				for _, credential := range []string{"of-bob", "", "of-nobody"} {
					// An error may repeat the selector and the name in the path.
					sent, _ := url.QueryUnescape(path)
					got := c.send(credential, "GET", c.relayed+path, "", header...)
					for _, hidden := range []string{"marker-1", "marker-2", `"x":"marker"`, `"name":"own"`} {
						if strings.Contains(got.body, hidden) && (got.code < 300 || !strings.Contains(sent, hidden)) {
							c.Fatalf("%q sees %s at %s %q: %d %s", credential, hidden, path, header, got.code, got.body)
						}
					}
					if credential != "of-bob" && got.code < 300 {
						c.Fatalf("%q reads %s %q: %d %s", credential, path, header, got.code, got.body)
					}
				}
			}
		}
	})
}

func TestRefusalsAreThoseOfTheServer(t *testing.T) {
	withTenants(t, func(c *cluster) {
		for _, credential := range []string{"", "of-nobody", "of-bob"} {
			for _, path := range []string{
				podsPath, podsPath + "?watch=true", podsPath + "/marker-1",
				podsPath + "/missing", "/api/v1/pods",
			} {
				want, got := c.send(credential, "GET", c.direct+path, ""), c.send(credential, "GET", c.relayed+path, "")
				if got.code != want.code || got.body != want.body || got.code != http.StatusUnauthorized &&
					got.code != http.StatusForbidden {
					c.Errorf("%q %s: got %d %s, want the refusal of the API server: %d %s", credential, path, got.code,
						got.body, want.code, want.body)
				}
			}
		}
	})
}

func TestRightsToOneNameShowOneObject(t *testing.T) {
	withTenants(t, func(c *cluster) {
		for _, query := range []string{"", "watch=true&timeoutSeconds=1&resourceVersion=0&"} {
			for _, selector := range []string{
				"metadata.name=own", "metadata.name==own",
				"metadata.name=own,metadata.namespace=a",
			} {
				body := c.get("of-carl", podsPath+"?"+query+"fieldSelector="+url.QueryEscape(selector))
				if strings.Count(body, `"name":"own"`) != 1 || strings.Contains(body, "marker-") {
					c.Errorf("%s%s: got %s, want one pod", query, selector, body)
				}
			}
			for _, selector := range []string{
				"", "metadata.name!=own", "metadata.name=own,metadata.name=marker-1",
				"metadata.name=marker-1",
			} {
				got := c.send("of-carl", "GET", c.relayed+podsPath+"?"+query+"fieldSelector="+url.QueryEscape(selector),
					"")
				if got.code < 300 && strings.Contains(got.body, "marker-") {
					c.Errorf("%s%s: got %d %s, want no other pod", query, selector, got.code, got.body)
				}
			}
		}
		if n := c.count("carl GET " + podsPath); n != 8 {
			c.Errorf("the API server received %d requests, want the 8 without a right", n)
		}
	})
}

func TestReviewsThatFailAllowNothing(t *testing.T) {
	withTenants(t, func(c *cluster) {
		c.change(func() { c.outage = true })
		time.Sleep(reviewLifetime)
		for _, credential := range []string{"of-ann", "of-bob"} {
			got := c.send(credential, "GET", c.relayed+podsPath, "")
			if got.code != http.StatusServiceUnavailable || strings.Contains(got.body, marker) ||
				got.header.Get("Retry-After") == "" {
				c.Errorf("%s: got %d %s, want 503 and Retry-After", credential, got.code, got.body)
			}
		}
	})
}

func TestWatchesEndWithTheRightToThem(t *testing.T) {
	for _, test := range []struct {
		name, want string
		revoke     func(c *cluster)
	}{
		{"right", `"code":403`, func(c *cluster) { c.allowed = func(watchserver.User, access) bool { return false } }},
		{"token", `"code":401`, func(c *cluster) { delete(c.users, "of-ann") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			withTenants(t, func(c *cluster) {
				time.AfterFunc(time.Second, func() { c.change(func() { test.revoke(c) }) })
				opened := time.Now()
				body := c.get("of-ann", podsPath+"?watch=true&timeoutSeconds=600")
				if !strings.Contains(body, test.want) || time.Since(opened) > recheckInterval+time.Second {
					c.Errorf("after %v: got %s, want an ERROR event with %s at the next review", time.Since(opened),
						body, test.want)
				}
			})
		})
	}
}

func TestWatchesSurviveAnOutage(t *testing.T) {
	withTenants(t, func(c *cluster) {
		time.AfterFunc(time.Second, func() { c.change(func() { c.outage = true }) })
		opened := time.Now()
		body := c.get("of-ann", podsPath+"?watch=true&timeoutSeconds=600")
		if strings.Contains(body, "ERROR") || time.Since(opened) < 599*time.Second {
			c.Errorf("the watch ended after %v: %s", time.Since(opened), body)
		}
	})
}
