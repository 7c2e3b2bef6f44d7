//go:build !race

package lives

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
)

// TestManagersAreThoseOfACluster compares each entry of managedFields with a cluster if kubetest
// keeps them from the creation of an object on. Without this option, lives compare less.
func TestManagersAreThoseOfACluster(t *testing.T) {
	k, _ := startAPIServer(t)
	o := newSide(t, "kubetest", kubetest.New(t, kubetest.Options{ManagedFields: true}).Config())
	l := &life{
		comparison: &comparison{kubernetes: k, ours: o}, name: "default", k: newMemory(), o: newMemory(),
	}
	fill, entries := strings.NewReplacer("NAME", l.name), 0
	for _, s := range managed {
		s.path, s.body = fill.Replace(s.path), fill.Replace(s.body)
		theirs, ours, err := l.send(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		want := managersIn(theirs.body)
		entries += len(want)
		if theirs.code != ours.code {
			t.Errorf("%s: got status %d, want %d: %s", s.curl(), ours.code, theirs.code, show(theirs.body))
		}
		if diff := cmp.Diff(want, managersIn(ours.body)); diff != "" {
			t.Errorf("%s: (-Kubernetes +kubetest)\n%s", s.curl(), diff)
		}
	}
	t.Logf("%d requests, %d entries", len(managed), entries)
}

// managersIn returns the sorted entries of managedFields of an object.
func managersIn(body any) (all []string) {
	o, _ := body.(map[string]any)
	metadata, _ := o["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]manager)
	for _, m := range entries {
		all = append(all, m.String())
	}
	slices.Sort(all)
	return all
}

// by returns a step in which a manager sends the request. More parameters may follow its name.
func by(manager string, s step) step {
	s.query = "fieldManager=" + manager
	return s
}

// withPatch returns a step with a patch of another type than those of the function patch.
func withPatch(contentType, plural, name, body string) step {
	s := patch(plural, name, body)
	s.contentType = contentType
	return s
}

// writtenWith returns a step with a create or an update of an object.
func writtenWith(method, plural, name, metadata, content string) step {
	k := kindOf(plural)
	k.content = content
	s := step{
		verb: "create", method: method, path: k.path("NAME", ""), body: k.object(k.nameIn(name), metadata),
	}
	if method == http.MethodPut {
		s.verb, s.path = "update", at(plural, name)
	}
	return s
}

// managed are writes of objects whose defaults kubetest has.
var managed = []step{
	create("configmaps", "a", ""),
	create("configmaps", "labeled", `"labels":{"a":"b"},"annotations":{},"finalizers":["example.com/held"],`+
		ownedBy("configmaps/a")),
	by("patcher", patch("configmaps", "a", `{"data":{"b":"c"}}`)),
	by("patcher", patch("configmaps", "a", `{"data":{"b":"c"}}`)),
	by("strategic", withPatch("application/strategic-merge-patch+json", "configmaps", "a", `{"data":{"c":"d"}}`)),
	by("json", withPatch("application/json-patch+json", "configmaps", "a",
		`[{"op":"add","path":"/metadata/labels","value":{"x":"y"}},{"op":"remove","path":"/data/c"}]`)),
	by("updater", writtenWith(http.MethodPut, "configmaps", "a", `"labels":{"x":"z"}`, `"data":{"a":"other","d":"e"}`)),
	apply("configmaps", "a", "applier", `"data":{"a":"mine"}`),
	by("applier&force=true", apply("configmaps", "a", "", `"data":{"a":"mine"}`)),
	by("updater", writtenWith(http.MethodPut, "configmaps", "a", "", `"data":{"d":"e"}`)),
	patch("configmaps", "a", `{"metadata":{"managedFields":[{}]}}`),
	by("updater", patch("configmaps", "a", `{"data":{"f":"g"}}`)),
	apply("configmaps", "a", "applier", `"data":{"h":"i"}`),
	by("updater", patch("configmaps", "a", `{"data":{"f":"h"}}`)),
	by("dry&dryRun=All", create("configmaps", "dry", "")),
	writtenWith(http.MethodPost, "configmaps", "empty", "", ""),
	by("updater", patch("configmaps", "empty", `{"data":{"a":"b"}}`)),
	by("creator", create("gadgets", "g", "")),
	by("updater", patch("gadgets", "g", `{"spec":{"color":"blue"}}`)),
	by("other", patch("gadgets", "g", `{"metadata":{"labels":{"a":"b"}}}`)),
	apply("gadgets", "g", "applier", `"spec":{"color":"green"}`),
	by("creator", writtenWith(http.MethodPost, "widgets", "w", "", `"spec":{"color":"red","replicas":2}`)),
	by("controller", patch("widgets", "w/status", `{"status":{"phase":"A"}}`)),
	by("scaler", patch("widgets", "w/scale", `{"spec":{"replicas":3}}`)),
	by("controller", patch("widgets", "w/status", `{"status":{"phase":"B","replicas":1}}`)),
	get("widgets", "w"),
	by("creator", create("widgets", "v", "")),
	by("updater", patch("widgets", "v", `{"spec":{"ports":[{"port":80},{"port":81,"protocol":"UDP"}]}}`)),
	apply("widgets", "v", "applier", `"spec":{"ports":[{"port":81}],"flags":[{"note":"a"}]}`),
	by("creator", create("secrets", "s", "")),
	by("creator", create("roles", "r", "")),
	by("updater", patch("roles", "r", `{"rules":[]}`)),
}
