package kubeapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/table"
)

func TestParseResource(t *testing.T) {
	for _, c := range []struct {
		text string
		want Resource
	}{
		{"widgets.v1.demo.example.com=Widget", Resource{
			Group: "demo.example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true,
			Singular: "widget",
		}},
		{
			"gadgets.v1beta2.demo=Gadget,cluster",
			Resource{Group: "demo", Version: "v1beta2", Plural: "gadgets", Kind: "Gadget", Singular: "gadget"},
		},
		{"nodes.v1=Node,cluster", Resource{
			Version: "v1", Plural: "nodes", Kind: "Node", Singular: "node",
			Schema: schema.Kubernetes("io.k8s.api.core.v1.Node"),
		}},
	} {
		got, err := ParseResource(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
	for _, text := range []string{
		"", "widgets", "widgets=Widget", "widgets.v1.demo", "widgets.v1.demo=", "widgets.v1.demo=widget",
		"Widgets.v1.demo=Widget",
		"widgets.1.demo=Widget", "widgets.v1.=Widget", "widgets.v1.Demo=Widget", "widgets.v1.demo=Widget,",
		"widgets.v1.demo=Widget,global",
		"watch.v1.demo=Watch", ".v1.demo=Widget", "widgets.v1.demo=Wid/get", "widgets.v0.demo=Widget",
		// The paths of these resources have another meaning, or their kinds are reserved.
		"status.v1=State", "finalize.v1=Finalize", "namespaces.v1.demo=Namespace,cluster", "status.v1=Status,cluster",
		"lists.v1=List", "options.v1.demo=DeleteOptions", "events.v1.demo=WatchEvent",
	} {
		if r, err := ParseResource(text); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%q: got %+v, %v, want Invalid", text, r, err)
		}
	}
}

func TestAddRejectsConflictingResources(t *testing.T) {
	for text, want := range map[string]string{
		"pods.v1=Thing":        "/api/v1/pods is already served",
		"things.v1=Pod":        `resource "things": the kind Pod belongs to pods`,
		"things.v1=PodList":    `resource "things": the kind PodList belongs to pods`,
		"pod.v1=Thing":         `resource "pod": the name "pod" belongs to pods`,
		"things.v1=Po":         `resource "things": the name "po" belongs to pods`,
		"things.v2=Deploy":     "",
		"deploys.v2.apps=Cm":   "",
		"pods.v2=Pod":          "",
		"pods.v1.demo=Pod":     "",
		"status.v1.demo=State": "",
	} {
		r, err := ParseResource(text)
		if err != nil {
			t.Fatal(err)
		}
		h := new(Handler)
		for _, other := range DefaultResources() {
			if err := h.Add(other, nil); err != nil {
				t.Fatal(err)
			}
		}
		err = h.Add(r, nil)
		if want == "" && err != nil ||
			want != "" && (err == nil || !strings.HasPrefix(listwatch.AsError(err).Message, want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for _, r := range []Resource{
		{},
		{Version: "v1", Plural: "things"},
		{Version: "1", Plural: "things", Kind: "Thing"},
		{Version: "v1", Plural: "status", Kind: "State", Namespaced: true},
		{Version: "v1", Plural: "things", Kind: "Thing", Columns: []table.Column{{Path: ".a"}}},
	} {
		if err := new(Handler).Add(r, nil); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%+v: got %v, want Invalid", r, err)
		}
	}
}

func FuzzParseResource(f *testing.F) {
	f.Add("widgets.v1.demo.example.com=Widget,cluster")
	f.Add("nodes.v1=Node")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseResource(s)
		if err != nil {
			return
		}
		ns := ""
		if r.Namespaced {
			ns = "default"
		}
		got, ok := ParseRoute(r.Path(ns) + "/name")
		want := Route{Group: r.Group, Version: r.Version, Plural: r.Plural, Namespace: ns, Name: "name"}
		if !ok || got != want {
			t.Errorf("%q: its path is parsed as %+v, want %+v", s, got, want)
		}
	})
}

func TestFindResourceAcceptsAllNames(t *testing.T) {
	for name, want := range map[string]string{
		"pods": "pods", "pod": "pods", "po": "pods", "PO": "pods", "pods.v1": "pods",
		"deploy": "deployments.apps", "deployments.apps": "deployments.apps", "Deployment": "deployments.apps",
		"deployments.v1.apps": "deployments.apps",
		"cm":                  "configmaps", "svc": "services", "ns": "namespaces",
	} {
		if r, ok := FindResource(DefaultResources(), name); !ok || r.QualifiedName() != want {
			t.Errorf("%s: got %s, %v, want %s", name, r.QualifiedName(), ok, want)
		}
	}
	for _, name := range []string{"", "pods.apps", "p", "widgets"} {
		if r, ok := FindResource(DefaultResources(), name); ok {
			t.Errorf("%q: got %s, want none", name, r.QualifiedName())
		}
	}
}

func FuzzParseRoute(f *testing.F) {
	f.Add("/api/v1/namespaces/default/pods/one")
	f.Add("/apis/apps/v1/watch/namespaces/default/deployments")
	f.Add("/api/v1/namespaces/a/status")
	f.Fuzz(func(t *testing.T, path string) {
		if r, ok := ParseRoute(path); ok && (r.Plural == "" || r.Version == "" || r.Subresource != "" && r.Name == "") {
			t.Errorf("%q: got %+v", path, r)
		}
	})
}
