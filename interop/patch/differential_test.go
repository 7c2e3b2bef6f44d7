package patch

import (
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/kubetest"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/strategicpatch"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	theirs "k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
)

var (
	seed   = flag.Uint64("seed", 1, "what the random objects and patches begin from")
	rounds = flag.Int("rounds", 50, "how many patches of each kind and sort are compared")
)

// depth is how deep random objects are: down to the ports of a deployment's containers.
const depth = 7

// A subject is a kind whose patches are compared.
type subject struct {
	kubeapi.Resource
	goType any
}

// each runs f for each kind, with numbers that a seed repeats.
func each(t *testing.T, f func(t *testing.T, s subject, g generator)) {
	for _, r := range kubeapi.DefaultResources() {
		t.Run(r.Kind, func(t *testing.T) {
			for i := range *rounds {
				f(t, subject{r, kinds[r.Kind]}, generator{rand.New(rand.NewPCG(*seed, uint64(i)))})
				if t.Failed() {
					t.Fatalf("-seed=%d, round %d", *seed, i)
				}
			}
		})
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// typed returns what Kubernetes keeps of a result: it has Go's types, so that nulls and what it does not know are lost. Directives
// and nulls that it has left in elements that are new are obeyed, as we do.
func (s subject) typed(t *testing.T, data []byte) string {
	t.Helper()
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	raw, _ = withoutDirectives(raw)
	into := reflect.New(reflect.TypeOf(s.goType).Elem()).Interface()
	if err := json.Unmarshal(encode(t, raw), into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return string(encode(t, into))
}

// withoutDirectives returns what is left of v when its directives and nulls are obeyed; nothing, where v is to be deleted.
func withoutDirectives(v any) (left any, keep bool) {
	switch v := v.(type) {
	case object:
		if v["$patch"] == "delete" {
			return nil, false
		}
		out := object{}
		for name, member := range v {
			if m, keep := withoutDirectives(member); keep && m != nil && !strings.HasPrefix(name, "$") {
				out[name] = m
			}
		}
		return out, true
	case []any:
		out := []any{}
		for _, element := range v {
			o, _ := element.(object)
			if e, keep := withoutDirectives(element); keep && o["$patch"] != "replace" {
				out = append(out, e)
			}
		}
		return out, true
	}
	return v, true
}

// compare holds that a patch makes the same of an object here and there.
func (s subject) compare(t *testing.T, original, patch []byte) {
	t.Helper()
	want, err := theirs.StrategicMergePatch(original, patch, s.goType)
	if err != nil && strings.HasPrefix(err.Error(), "no elements in any") {
		return // it can't order lists that are empty
	}
	if err != nil {
		t.Errorf("%s with %s: Kubernetes says %v", original, patch, err)
		return
	}
	got, err := strategicpatch.Apply(original, patch, s.Schema)
	if err != nil {
		t.Errorf("%s with %s: %v, want %s", original, patch, err, want)
		return
	}
	if here, there := s.typed(t, got), s.typed(t, want); here != there {
		t.Errorf("%s with %s:\n got %s\nwant %s", original, patch, here, there)
	}
}

func TestPatchesByHandDoWhatTheyDoInKubernetes(t *testing.T) {
	each(t, func(t *testing.T, s subject, g generator) {
		o := g.object(s.Schema, depth)
		s.compare(t, encode(t, o), encode(t, g.patch(o, s.Schema, depth)))
	})
}

func TestTwoWayPatchesDoWhatTheyDoInKubernetes(t *testing.T) {
	each(t, func(t *testing.T, s subject, g generator) {
		o := g.object(s.Schema, depth)
		original, modified := encode(t, o), encode(t, g.changed(o, s.Schema, depth))
		patch, err := theirs.CreateTwoWayMergePatch(original, modified, s.goType)
		if err != nil {
			t.Errorf("%s to %s: %v", original, modified, err)
			return
		}
		s.compare(t, original, patch)
	})
}

// What kubectl apply does: somebody applied the original, others have changed what came of it, and now it is modified and applied again.
func TestThreeWayPatchesDoWhatTheyDoInKubernetes(t *testing.T) {
	documents := openAPI(t)
	each(t, func(t *testing.T, s subject, g generator) {
		o := g.object(s.Schema, depth)
		original := encode(t, o)
		modified, current := encode(t, g.changed(o, s.Schema, depth)), encode(t, g.changed(o, s.Schema, depth))
		types, err := theirs.NewPatchMetaFromStruct(s.goType)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := theirs.CreateThreeWayMergePatch(original, modified, current, types, true)
		if err != nil {
			t.Errorf("%s to %s over %s: %v", original, modified, current, err)
			return
		}
		s.compare(t, current, patch)
		same, err := theirs.CreateThreeWayMergePatch(original, modified, current, documents[s.Kind], true)
		if err != nil || string(same) != string(patch) {
			t.Errorf("%s to %s over %s: by our OpenAPI\n got %s, %v,\nwant %s", original, modified, current, same, err, patch)
		}
	})
}

// openAPI returns the schemas of the default resources as kubectl reads them, by kind.
func openAPI(t *testing.T) map[string]theirs.LookupPatchMeta {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(kubetest.Start(t).Config(kubetest.HTTP2))
	if err != nil {
		t.Fatal(err)
	}
	root := openapi3.NewRoot(client.OpenAPIV3())
	all := map[string]theirs.LookupPatchMeta{}
	for _, r := range kubeapi.DefaultResources() {
		document, err := root.GVSpec(runtimeschema.GroupVersion{Group: r.Group, Version: r.Version})
		if err != nil {
			t.Fatal(err)
		}
		schemas := document.Components.Schemas
		if schemas[r.Schema.Name] == nil {
			t.Fatalf("%s is not among %v", r.Schema.Name, slices.Collect(maps.Keys(schemas)))
		}
		all[r.Kind] = theirs.PatchMetaFromOpenAPIV3{Schema: schemas[r.Schema.Name], SchemaList: schemas}
	}
	return all
}

// Where Kubernetes loses something without a word, we don't. Package strategicpatch lists these.
func TestDifferencesFromKubernetesAreThoseThatAreTold(t *testing.T) {
	pod := subject{kubeapi.Resource{Schema: schema.Kubernetes("io.k8s.api.core.v1.Pod")}, kinds["Pod"]}
	const refused = "refused"
	for _, c := range []struct{ original, patch, theirs, ours string }{
		{`{}`, `{"spec":{"dnsConfig":{"$patch":"replace","searches":["a"]}}}`, `{"spec":{}}`, `{"spec":{"dnsConfig":{"searches":["a"]}}}`},
		{
			`{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"containers":[{"name":"a","image":"x","$patch":"replace"}]}}`,
			`{"spec":{"containers":[]}}`, refused,
		},
		{
			`{"spec":{"affinity":{"podAffinity":{}}}}`, `{"spec":{"affinity":{"$patch":"replace","nodeAffinity":{"$patch":"delete"},"podAffinity":null}}}`,
			`{"spec":{"affinity":{"nodeAffinity":{"$patch":"delete"},"podAffinity":null}}}`, `{"spec":{"affinity":{}}}`,
		},
		{
			`{"spec":{"tolerations":[{"key":"a"}]}}`, `{"spec":{"tolerations":[{"$patch":"replace"},{"key":"b"}]}}`,
			`{"spec":{"tolerations":[{"$patch":"replace"},{"key":"b"}]}}`, `{"spec":{"tolerations":[{"key":"b"}]}}`,
		},
		{
			`{"spec":{"containers":[]}}`, `{"spec":{"containers":[{"name":"a","env":[{"name":"b","$patch":"delete"}],"resources":{"limits":{"cpu":null}}}]}}`,
			`{"spec":{"containers":[{"env":[{"$patch":"delete","name":"b"}],"name":"a","resources":{"limits":{"cpu":null}}}]}}`,
			`{"spec":{"containers":[{"name":"a","env":[],"resources":{"limits":{}}}]}}`,
		},
		{`{"spec":{}}`, `{"spec":{"$setElementOrder/containers":[],"containers":[]}}`, refused, `{"spec":{"containers":[]}}`},
		{`{"spec":{"other":{"a":1}}}`, `{"spec":{"other":{"b":2}}}`, refused, `{"spec":{"other":{"a":1,"b":2}}}`},
		{
			`{"spec":{"containers":[{"image":"x"}]}}`, `{"spec":{"containers":[{"name":"a"}]}}`,
			refused, `{"spec":{"containers":[{"name":"a"},{"image":"x"}]}}`,
		},
		{`{"spec":{"dnsConfig":{}}}`, `{"spec":{"dnsConfig":{"$patch":"merge","searches":["a"]}}}`, refused, `{"spec":{"dnsConfig":{"searches":["a"]}}}`},
		{`{"spec":{}}`, `{"$patch":"delete"}`, `{}`, refused},
		{`{"spec":{}}`, `{"$patch":"replace","kind":"Pod"}`, `{"kind":"Pod"}`, refused},
	} {
		said := func(out []byte, err error) string {
			if err != nil {
				return refused
			}
			return string(out)
		}
		if got := said(theirs.StrategicMergePatch([]byte(c.original), []byte(c.patch), pod.goType)); got != c.theirs {
			t.Errorf("%s with %s: Kubernetes makes %s, and no longer %s", c.original, c.patch, got, c.theirs)
		}
		if got := said(strategicpatch.Apply([]byte(c.original), []byte(c.patch), pod.Schema)); got != c.ours {
			t.Errorf("%s with %s: got %s, want %s", c.original, c.patch, got, c.ours)
		}
	}
}
