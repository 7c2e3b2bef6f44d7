package clusterrelay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"reflect"
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
			`"status":{"conditions":[{"lastHeartbeatTime":"later"}]}`, `"status":{"phase":"Running"}`, `"spec":{"nodeName":"n"}`,
		} {
			path := podsPath + "/one"
			if strings.Contains(spec, "status") {
				path += "/status"
			}
			if r := c.send("of-ann", "PATCH", c.relayed+path, "{"+spec+"}", "Content-Type", "application/merge-patch+json"); r.code != 200 {
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
			"<b>ann list pods.v1": "1 0 true", "<b>ann watch pods.v1": "1 1 true", passedOn + " get pods.v1": "1 0 true", passedOn + " patch pods.v1": "4 0 true",
		}
		if fmt.Sprint(reads) != fmt.Sprint(want) {
			c.Errorf("got reads %v, want %v", reads, want)
		}
		if n := len(got.Changes); n != 1 {
			c.Fatalf("got changes of %d resources, want 1: %+v", n, got.Changes)
		}
		if g := got.Changes[0]; g.Resource != "pods.v1" || g.Changes != 4 || g.Heartbeats != 1 || g.Status != 2 ||
			g.Metadata <= 0 || g.Metadata >= g.Bytes {
			c.Errorf("got %+v, want 4 changes: 1 of a heartbeat, 2 of the status", g)
		}
		if text := shown("", "*/*"); !strings.Contains(text, "CLIENT") || !strings.Contains(text, "ann") {
			c.Errorf("got %s, want tables", text)
		}
		page := shown("", "text/html,*/*;q=0.8")
		for _, want := range []string{"<!doctype html>", "<td>&lt;b&gt;ann</td>", "<td>status.phase</td><td>2</td>", "<h2>Reads</h2>"} {
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

func TestChangesAreClassified(t *testing.T) {
	object := func(managed, beat, phase, spec string) []byte {
		return []byte(`{"metadata":{"name":"a","resourceVersion":"` + managed + beat + phase + spec + `","managedFields":[{"manager":"` + managed +
			`"}]},"spec":"` + spec + `","status":{"conditions":[{"lastHeartbeatTime":"` + beat + `"}],"phase":"` + phase + `"}}`)
	}
	before := object("a", "a", "a", "a")
	for _, test := range []struct {
		after []byte
		want  changesOf
	}{
		{object("b", "a", "a", "a"), changesOf{Nothing: 1}},
		{object("b", "b", "a", "a"), changesOf{Heartbeats: 1}},
		{object("b", "b", "b", "a"), changesOf{Status: 1}},
		{object("b", "b", "b", "b"), changesOf{}},
		{[]byte(`{"metadata":{"name":"a","managedFields":[{"manager":"b"}]},"spec":"a"}`), changesOf{Status: 1}},
		{bytes.Replace(object("b", "b", "a", "a"), []byte(`{"last`), []byte(`{"type":"Ready","last`), 1), changesOf{Status: 1}},
		{bytes.Replace(object("b", "b", "a", "a"), []byte(`"lastHeartbeatTime":"b"`), nil, 1), changesOf{Heartbeats: 1}},
		{bytes.Replace(object("b", "b", "a", "a"), []byte(`"name"`), []byte(`"labels":{},"name"`), 1), changesOf{}},
	} {
		got := countChange(before, test.after)
		test.want.Changes, test.want.Bytes = 1, int64(len(test.after))
		test.want.ManagedFields = int64(len(`[{"manager":"b"}]`))
		test.want.Metadata = got.Metadata
		if !reflect.DeepEqual(got, test.want) || got.Metadata <= got.ManagedFields {
			t.Errorf("%s: got %+v, want %+v", test.after, got, test.want)
		}
	}
}

// One change of a large object must not hold up the streams, which count what they send.
func TestAuditDecodesNoObject(t *testing.T) {
	large := func(phase string) []byte {
		return []byte(`{"metadata":{"name":"a","resourceVersion":"` + phase + `"},"data":"` + strings.Repeat("x", 1<<20) + `","status":"` + phase + `"}`)
	}
	before, after := large("1"), large("2")
	allocated := testing.AllocsPerRun(5, func() { countChange(before, after) })
	if allocated > 100 {
		t.Errorf("a comparison allocates %v times, want at most 100: objects are not decoded", allocated)
	}
}

func BenchmarkCountChange(b *testing.B) {
	var before, after strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&before, `,"key-%d":{"a":[1,2,{"b":"c"}],"lastProbeTime":"%[1]d","text":"%064[1]d"}`, i)
		fmt.Fprintf(&after, `,"key-%d":{"a":[1,2,{"b":"c"}],"lastProbeTime":"x%[1]d","text":"%064[1]d"}`, i)
	}
	old, now := []byte(`{"metadata":{}`+before.String()+`}`), []byte(`{"metadata":{}`+after.String()+`}`)
	b.SetBytes(int64(len(now)))
	for b.Loop() {
		if c := countChange(old, now); c.Heartbeats != 1 {
			b.Fatal(c)
		}
	}
}
