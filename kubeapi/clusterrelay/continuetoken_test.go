package clusterrelay

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/kubeapi"
)

const allPodsPath = "/api/v1/pods"

// nextToken returns the continue token of a list.
func nextToken(list string) string {
	_, token, _ := strings.Cut(list, `"continue":"`)
	token, _, _ = strings.Cut(token, `"`)
	return token
}

func TestTokensHaveTheFormOfTheServer(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		for _, namespace := range []string{"a", "prod", "prod-eu"} {
			for i := range 2 {
				c.create("/api/v1/namespaces/"+namespace+"/pods", named(fmt.Sprint("p", i)))
			}
		}
		c.warm(allPodsPath)
		for path, want := range map[string]string{
			podsPath + "?limit=1":                           "p0\x00",
			allPodsPath + "?limit=1":                        "a/p0\x00",
			"/api/v1/namespaces/prod-eu/pods?limit=1":       "p0\x00",
			allPodsPath + "?limit=3":                        "", // in etcd, prod-eu precedes prod
			allPodsPath + "?limit=1&resourceVersion=0":      "a/p0\x00",
			allPodsPath + "?limit=1&labelSelector=x!%3Dy":   "a/p0\x00",
			allPodsPath + "?limit=1&fields=metadata.labels": "a/p0\x00",
		} {
			list := c.get("of-ann", path)
			token, ok := parseContinueToken(nextToken(list))
			if token.Start != want || ok != (want != "") || !isOwnToken(nextToken(list)) ||
				ok && !strings.Contains(list, fmt.Sprintf(`"resourceVersion":"%d"`, token.Version)) {
				t.Errorf("%s: got the token %+v in %s, want %q", path, token, list, want)
			}
		}
		var names []string
		for next := ""; ; {
			list := c.get("of-ann", allPodsPath+"?limit=1&continue="+next)
			_, name, _ := strings.Cut(list, `"name":"`)
			names = append(names, name[:strings.IndexByte(name, '"')])
			if next = nextToken(list); next == "" {
				break
			}
		}
		if got := strings.Join(names, " "); got != "p0 p1 p0 p1 p0 p1" {
			t.Errorf("got the pages %s", got)
		}
	})
}

func TestListsOfADroppedCacheContinueAtTheServer(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		for _, namespace := range []string{"a", "prod", "prod-eu"} {
			c.create("/api/v1/namespaces/"+namespace+"/pods", named("p"))
		}
		c.warm(allPodsPath)
		readable := nextToken(c.get("of-ann", allPodsPath+"?limit=1"))
		own := nextToken(c.get("of-ann", allPodsPath+"?limit=2"))
		c.change(func() { c.refuse = "pods" })
		for range 2 {
			c.handler.caches.update(make(map[resourceID]kubeapi.Resource))
		}
		before := c.count("ann GET " + allPodsPath)
		c.send("of-ann", "GET", c.relayed+allPodsPath+"?limit=1&continue="+readable, "")
		if n := c.count("ann GET " + allPodsPath); n != before+1 {
			c.Errorf("the API server received %d requests, want one", n-before)
		}
		if r := c.send("of-ann", "GET", c.relayed+allPodsPath+"?limit=1&continue="+own, ""); r.code != http.StatusGone {
			c.Errorf("a token that only the relay can read: got %d %s, want 410", r.code, r.body)
		}
	})
}

func TestListsBeforeTheHistoryContinueAtTheServer(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		for i := range 2 {
			c.create(podsPath, named(fmt.Sprint("p", i)))
		}
		c.warm(podsPath)
		token := nextToken(c.get("of-ann", podsPath+"?limit=1"))
		c.create(podsPath, named("later"))
		c.get("of-ann", podsPath)
		for _, k := range c.handler.caches.all() {
			if err := k.Compact(c.Context()); err != nil {
				c.Fatal(err)
			}
		}
		before := c.count("ann GET " + podsPath)
		c.send("of-ann", "GET", c.relayed+podsPath+"?limit=1&continue="+token, "")
		if n := c.count("ann GET " + podsPath); n != before+1 {
			c.Errorf("the API server received %d requests, want one", n-before)
		}
	})
}

func TestTokensConvertBothWays(t *testing.T) {
	key := listwatch.Key{Namespace: "a", Name: "p"}
	for version, want := range map[listwatch.Version]int64{7: 7, 0: -1} {
		own := history.ContinueToken{Version: version, Key: key, Remaining: 3, Bytewise: true}.Encode()
		token := forServer(own, "a")
		if got, ok := parseContinueToken(token); !ok || got.Version != want || got.Start != "p\x00" {
			t.Errorf("version %d: got %+v, %t", version, got, ok)
		}
		if got := forCache(token); got != own {
			t.Errorf("version %d: got %s back, want %s", version, got, own)
		}
	}
	for _, other := range []string{"", "x", "e30", history.ContinueToken{Version: 7, Key: key}.Encode()} {
		if a, b := forServer(other, ""), forCache(other); a != other || b != other {
			t.Errorf("%q: got %q and %q, want no change", other, a, b)
		}
	}
}
