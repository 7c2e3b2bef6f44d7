package clusterrelay

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/listwatch/listwatch/internal/rest"
)

// A parameter that the relay does not know makes it pass the request on, so that a client that asks
// for less costs the API server a watch of its own.
func TestCachesAnswerEachParameter(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		c.create(podsPath, named("one"))
		c.create(podsPath, named("two"))
		c.warm(podsPath)
		const watch = "watch=1&timeoutSeconds=1&resourceVersion=0"
		state := "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
		queries := map[string]string{
			"labelSelector": "labelSelector=a", "fieldSelector": "fieldSelector=metadata.name=one",
			"fields": "fields=metadata.name",
			"watch":  watch, "resourceVersion": "resourceVersion=0",
			"resourceVersionMatch": "resourceVersion=1&resourceVersionMatch=NotOlderThan",
			"sendInitialEvents":    state, "allowWatchBookmarks": watch + "&allowWatchBookmarks=1",
			"initialEventsSince": state + "&initialEventsSince=1",
			"initialEventsState": state + "&initialEventsState=x",
			"conflate":           watch + "&conflate=1s", "limit": "limit=1",
			"continue":       "limit=1&continue=" + c.token(),
			"timeoutSeconds": "timeoutSeconds=5", "timeout": "timeout=5s", "pretty": "pretty=1",
		}
		before := c.count("ann GET " + podsPath)
		for _, name := range rest.Names(rest.Selects, rest.Reads, rest.Responds) {
			query, ok := queries[name]
			if !ok {
				c.Errorf("%s: the new parameter needs a query", name)
			}
			if r := c.send("of-ann", "GET", c.relayed+podsPath+"?"+query, ""); r.code != http.StatusOK {
				c.Errorf("%s: got %d %s, want 200", query, r.code, r.body)
			}
			if n := c.count("ann GET "+podsPath) - before; n != 0 {
				c.Fatalf("%s: the API server received %d reads, want none", query, n)
			}
		}
	})
}

// token returns the continue token of the first page of a list.
func (c *cluster) token() string {
	var list struct{ Metadata struct{ Continue string } }
	if err := json.Unmarshal([]byte(c.get("of-ann", podsPath+"?limit=1")), &list); err != nil {
		c.Fatal(err)
	}
	return url.QueryEscape(list.Metadata.Continue)
}
