package clusterrelay

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAuditCountsReadsAndChanges(t *testing.T) {
	withCluster(t, Options{Audit: true}, func(c *cluster) {
		c.change(func() { c.users["of-ann"] = "<b>ann" })
		c.create(podsPath, named("one"))
		list := c.get("of-ann", podsPath+"?resourceVersion=0")
		c.get("of-ann", podsPath+"?watch=true&timeoutSeconds=1")
		c.get("of-bob", podsPath+"/one")
		synctest.Wait()
		for _, spec := range []string{
			`"status":{"conditions":[{"lastHeartbeatTime":"now"}]}`,
			`"status":{"conditions":[{"lastHeartbeatTime":"later"}]}`, `"status":{"phase":"Running"}`,
			`"spec":{"nodeName":"n"}`,
		} {
			path := podsPath + "/one"
			if strings.Contains(spec, "status") {
				path += "/status"
			}
			if r := c.send("of-ann", "PATCH", c.relayed+path, "{"+spec+"}", "Content-Type",
				"application/merge-patch+json"); r.code != 200 {
				c.Fatalf("%s: got %d %s", spec, r.code, r.body)
			}
		}
		time.Sleep(time.Second)
		var got report
		shown := func(query, accept string) string {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/debug/audit"+query, nil)
			r.Header.Set("Accept", accept)
			c.handler.Audit()(w, r)
			return w.Body.String()
		}
		if err := json.Unmarshal([]byte(shown("?format=json", "text/html")), &got); err != nil {
			c.Fatal(err)
		}
		reads := make(map[string]string)
		for _, r := range got.Reads {
			reads[r.Client+" "+r.Verb+" "+r.Resource] = fmt.Sprint(r.Requests, r.Events, r.Bytes > 0)
			if r.Verb == "list" && r.Bytes != int64(len(list)) {
				c.Errorf("the audit counts %d bytes of the list, want %d", r.Bytes, len(list))
			}
		}
		want := map[string]string{
			"<b>ann list pods.v1": "1 0 true", "<b>ann watch pods.v1": "1 1 true",
			passedOn + " get pods.v1": "1 0 true", passedOn + " patch pods.v1": "4 0 true",
		}
		if fmt.Sprint(reads) != fmt.Sprint(want) {
			c.Errorf("got reads %v, want %v", reads, want)
		}
		if n := len(got.Changes); n != 1 {
			c.Fatalf("got changes of %d resources, want 1: %+v", n, got.Changes)
		}
		g := got.Changes[0]
		if g.Resource != "pods.v1" || g.Changes.Events != 4 {
			c.Errorf("got %d changes of %s, want 4 of pods.v1", g.Changes.Events, g.Resource)
		}
		saved := make(map[string]int)
		for _, s := range g.Savings {
			saved[s.Parameter] = s.Changes.Events
		}
		if saved["fields=-status"] != 3 || saved["conflate=1s"] != 2 {
			c.Errorf("got the savings %v, want the 3 changes of the status, and 2 by conflation", saved)
		}
		if text := shown("", "*/*"); !strings.Contains(text, "CLIENT") || !strings.Contains(text, "ann") {
			c.Errorf("got %s, want tables", text)
		}
		page := shown("", "text/html,*/*;q=0.8")
		for _, want := range []string{
			"<!doctype html>", "<td>&lt;b&gt;ann</td>", "<td>status.phase</td><td>2</td>",
			"<h2>Reads</h2>",
		} {
			if !strings.Contains(page, want) {
				c.Errorf("got %s, want a page with %s", page, want)
			}
		}
		time.Sleep(2 * time.Hour)
		if n := len(c.handler.caches.all()); n != 0 {
			c.Errorf("%d caches are open after an hour, want none: the audit is no reader", n)
		}
	})
}

// Every write of every stream is counted under the lock, so a comparison of large objects must not
// hold it.
func TestAuditComparesWithoutItsLock(t *testing.T) {
	withCluster(t, Options{Audit: true}, func(c *cluster) {
		c.warm(podsPath)
		synctest.Wait()
		a := c.handler.caches.audit
		a.mu.Lock()
		defer a.mu.Unlock()
		c.create(podsPath, named("one"))
		synctest.Wait()
		if n := a.meters["pods.v1"].Report().Changes.Events; n != 1 {
			c.Errorf("%d changes are counted while the lock is held, want 1", n)
		}
	})
}
