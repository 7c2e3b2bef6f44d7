package kubeapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// As in Kubernetes, absent booleans are false, and some fields have other names than their paths.
func TestFieldSelectorsSeeKubernetesValues(t *testing.T) {
	const pods, events = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/events"
	a := startServer(t, nil)
	for path, bodies := range map[string][]string{
		pods: {
			`{"metadata":{"name":"plain"},"spec":{"nodeName":"n1","containers":[]}}`,
			`{"metadata":{"name":"host"},"spec":{"hostNetwork":true,"containers":[]}}`,
			`{"metadata":{"name":"off"},"spec":{"hostNetwork":false,"containers":[]}}`,
		},
		events: {
			`{"metadata":{"name":"old"},"involvedObject":{},"source":{"component":"kubelet"},"reportingComponent":"other"}`,
			`{"metadata":{"name":"new"},"involvedObject":{},"reportingComponent":"kubelet"}`,
			`{"metadata":{"name":"none"},"involvedObject":{}}`,
		},
	} {
		for _, body := range bodies {
			a.want(t, 201, "POST", path, body)
		}
	}
	for _, c := range []struct{ path, selector, want string }{
		{pods, "spec.hostNetwork=false", "off,plain"},
		{pods, "spec.hostNetwork!=true", "off,plain"},
		{pods, "spec.hostNetwork=true", "host"},
		{pods, "spec.hostNetwork!=false", "host"},
		{pods, "spec.hostNetwork=", ""},
		{pods, "spec.host=n1", "plain"},
		{pods, "status.podIPs=", "host,off,plain"},
		{events, "source=kubelet", "new,old"},
		{events, "source!=kubelet", "none"},
		{events, "reportingComponent=kubelet", "new"},
	} {
		at := c.path + "?fieldSelector=" + url.QueryEscape(c.selector)
		var list struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(a.want(t, 200, "GET", at, "")), &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range list.Items {
			names = append(names, o.Metadata.Name)
		}
		if got := strings.Join(names, ","); got != c.want {
			t.Errorf("list of %s: got %s, want %s", c.selector, got, c.want)
		}
		next := a.watch(t, at+"&watch=1&resourceVersion=0", "application/json")
		for _, name := range names {
			if kind, object := next(); kind != "ADDED" || !strings.Contains(string(object), `"name":"`+name+`"`) {
				t.Errorf("watch of %s: got %s %s, want ADDED %s", c.selector, kind, object, name)
			}
		}
	}
	a.wantError(t, 400, "BadRequest", "GET", events+"?fieldSelector=source.component%3Dkubelet", "")
	// A pod leaves the selection when the host's network becomes its own.
	next := a.watch(t, pods+"?watch=1&fieldSelector=spec.hostNetwork%3Dfalse,metadata.name%3Dplain", "application/json")
	if kind, _ := next(); kind != "ADDED" {
		t.Errorf("got %s, want ADDED", kind)
	}
	a.want(t, 200, "PATCH", pods+"/plain", `{"spec":{"hostNetwork":true}}`, "Content-Type", mergePatchType)
	if kind, _ := next(); kind != "DELETED" {
		t.Errorf("got %s, want DELETED", kind)
	}
}

// The same value in another spelling is no change.
func TestWriteOfTheSameValueIsNoChange(t *testing.T) {
	const configMaps = "/api/v1/namespaces/default/configmaps"
	a := startServer(t, nil)
	first := metadata(t,
		a.want(t, 201, "POST", configMaps,
			`{"metadata":{"name":"a","annotations":{"n":"<"}},"data":{"x":"1 \u0026 2 \u00e9"}}`))
	for _, c := range []struct{ method, mediaType, body string }{
		{
			"PUT", "application/json",
			`{"metadata":{"annotations":{"n":"\u003c"},"name":"\u0061"},"data":{"\u0078":"1 & 2 é"}}`,
		},
		{"PATCH", mergePatchType, `{"data":{"x":"1 & 2 \u00E9"}}`},
		{
			"PATCH", "application/json-patch+json",
			`[{"op":"test","path":"/data/x","value":"1 & 2 é"},{"op":"replace","path":"/data/x","value":"1 & 2 é"}]`,
		},
		{"PATCH", "application/strategic-merge-patch+json", `{"data":{"x":"\u0031 & 2 é"}}`},
		{"PATCH", "application/apply-patch+yaml?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap"}`},
	} {
		mediaType, query, _ := strings.Cut(c.mediaType, "?")
		got := metadata(t, a.want(t, 200, c.method, configMaps+"/a?"+query, c.body, "Content-Type", mediaType))
		if query == "" && (got.ResourceVersion != first.ResourceVersion || got.Generation != 1) {
			t.Errorf("%s %s: got version %s, generation %d, want no write", c.method, c.mediaType, got.ResourceVersion,
				got.Generation)
		}
	}
}
