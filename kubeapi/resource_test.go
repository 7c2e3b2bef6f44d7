package kubeapi

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
)

func TestAResourceIsReadFromKubectlsNotation(t *testing.T) {
	for _, c := range []struct {
		text string
		want Resource
	}{
		{"widgets.v1.demo.example.com=Widget", Resource{
			Group: "demo.example.com", Version: "v1", Plural: "widgets", Singular: "widget", Kind: "Widget", Namespaced: true,
		}},
		{"gadgets.v1beta2.demo=Gadget,cluster", Resource{Group: "demo", Version: "v1beta2", Plural: "gadgets", Singular: "gadget", Kind: "Gadget"}},
		{"nodes.v1=Node,cluster", Resource{Version: "v1", Plural: "nodes", Singular: "node", Kind: "Node"}},
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
		"", "widgets", "widgets=Widget", "widgets.v1.demo", "widgets.v1.demo=", "widgets.v1.demo=widget", "Widgets.v1.demo=Widget",
		"widgets.1.demo=Widget", "widgets.v1.=Widget", "widgets.v1.Demo=Widget", "widgets.v1.demo=Widget,", "widgets.v1.demo=Widget,global",
		"watch.v1.demo=Watch", ".v1.demo=Widget", "widgets.v1.demo=Wid/get", "widgets.v0.demo=Widget",
	} {
		if r, err := ParseResource(text); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%q: got %+v, %v, want Invalid", text, r, err)
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
		got, ok := parseRoute(r.Path(ns) + "/name")
		want := route{group: r.Group, version: r.Version, plural: r.Plural, namespace: ns, name: "name"}
		// The core group's own namespaces can't be told from scopes; nobody declares them as namespaced.
		if r.Plural != "namespaces" && (!ok || got != want) {
			t.Errorf("%q: its path reads as %+v, want %+v", s, got, want)
		}
	})
}

func TestPeopleHaveManyWordsForAResource(t *testing.T) {
	for word, want := range map[string]string{
		"pods": "pods", "pod": "pods", "po": "pods", "PO": "pods", "pods.v1": "pods",
		"deploy": "deployments.apps", "deployments.apps": "deployments.apps", "Deployment": "deployments.apps", "deployments.v1.apps": "deployments.apps",
		"cm": "configmaps", "svc": "services", "ns": "namespaces",
	} {
		if r, ok := FindResource(DefaultResources(), word); !ok || r.QualifiedName() != want {
			t.Errorf("%s: got %s, %v, want %s", word, r.QualifiedName(), ok, want)
		}
	}
	for _, word := range []string{"", "pods.apps", "p", "widgets"} {
		if r, ok := FindResource(DefaultResources(), word); ok {
			t.Errorf("%q: got %s, want none", word, r.QualifiedName())
		}
	}
}

func FuzzParseRoute(f *testing.F) {
	f.Add("/api/v1/namespaces/default/pods/one")
	f.Add("/apis/apps/v1/watch/namespaces/default/deployments")
	f.Add("/api/v1/namespaces/a/status")
	f.Fuzz(func(t *testing.T, path string) {
		if r, ok := parseRoute(path); ok && (r.plural == "" || r.version == "" || r.subresource != "" && r.name == "") {
			t.Errorf("%q: got %+v", path, r)
		}
	})
}
