package kubernetes

import (
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/strategicpatch"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	theirs "k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
)

var (
	patchSeed   = flag.Uint64("seed", 1, "the seed of the random objects and patches")
	patchRounds = flag.Int("rounds", 50, "the number of patches that each test compares for each kind")
)

// patchDepth limits the depth of random objects. At this depth they include the ports of a
// deployment's containers.
const patchDepth = 7

// A patchedKind is a kind whose patches are compared.
type patchedKind struct {
	kubeapi.Resource
	goType any
}

// forEachKind calls f several times for each kind. The flag -seed reproduces the random numbers.
func forEachKind(t *testing.T, f func(t *testing.T, s patchedKind, g patchGenerator)) {
	for _, r := range kubeapi.DefaultResources() {
		t.Run(r.Kind, func(t *testing.T) {
			for i := range *patchRounds {
				f(t, patchedKind{r, goTypes[r.Kind]}, patchGenerator{rand.New(rand.NewPCG(*patchSeed, uint64(i)))})
				if t.Failed() {
					t.Fatalf("failed with -seed=%d in round %d", *patchSeed, i)
				}
			}
		})
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	return testkit.Must(json.Marshal(v))(t)
}

// normalized converts the result of a patch to the form that an API server stores. It applies the
// directives and nulls that Kubernetes' implementation leaves in new elements. Then it decodes the
// result into the Go type and encodes it again, which drops nulls and unknown fields.
func (p patchedKind) normalized(t *testing.T, data []byte) string {
	t.Helper()
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	raw, _ = withoutDirectives(raw)
	into := reflect.New(reflect.TypeOf(p.goType).Elem()).Interface()
	if err := json.Unmarshal(marshal(t, raw), into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return string(marshal(t, into))
}

// withoutDirectives applies the directives and nulls inside v, and returns the rest of v. keep
// is false if a directive deletes v itself.
func withoutDirectives(v any) (left any, keep bool) {
	switch v := v.(type) {
	case jsonObject:
		if v["$patch"] == "delete" {
			return nil, false
		}
		out := jsonObject{}
		for name, member := range v {
			if m, keep := withoutDirectives(member); keep && m != nil && !strings.HasPrefix(name, "$") {
				out[name] = m
			}
		}
		return out, true
	case []any:
		out := []any{}
		for _, element := range v {
			o, _ := element.(jsonObject)
			if e, keep := withoutDirectives(element); keep && o["$patch"] != "replace" {
				out = append(out, e)
			}
		}
		return out, true
	}
	return v, true
}

// compare applies a patch with both implementations and compares the results.
func (p patchedKind) compare(t *testing.T, original, patch []byte) {
	t.Helper()
	want, err := theirs.StrategicMergePatch(original, patch, p.goType)
	if err != nil && strings.HasPrefix(err.Error(), "no elements in any") {
		return // Kubernetes cannot order empty lists
	}
	if err != nil {
		t.Errorf("%s with %s: Kubernetes returns %v", original, patch, err)
		return
	}
	got, err := strategicpatch.Apply(original, patch, p.Schema)
	if err != nil {
		t.Errorf("%s with %s: %v, want %s", original, patch, err, want)
		return
	}
	if ours, kubernetes := p.normalized(t, got), p.normalized(t, want); ours != kubernetes {
		t.Errorf("%s with %s:\n got %s\nwant %s", original, patch, ours, kubernetes)
	}
}

func TestHandmadePatchesMatchKubernetes(t *testing.T) {
	forEachKind(t, func(t *testing.T, s patchedKind, g patchGenerator) {
		o := g.object(s.Schema, patchDepth)
		s.compare(t, marshal(t, o), marshal(t, g.patch(o, s.Schema, patchDepth)))
	})
}

func TestTwoWayPatchesMatchKubernetes(t *testing.T) {
	forEachKind(t, func(t *testing.T, s patchedKind, g patchGenerator) {
		o := g.object(s.Schema, patchDepth)
		original, modified := marshal(t, o), marshal(t, g.change(o, s.Schema, patchDepth))
		patch, err := theirs.CreateTwoWayMergePatch(original, modified, s.goType)
		if err != nil {
			t.Errorf("%s to %s: %v", original, modified, err)
			return
		}
		s.compare(t, original, patch)
	})
}

// kubectl apply creates three-way patches. The original is the configuration of the last apply,
// the current object contains changes of other writers, and the modified object is the new
// configuration.
func TestThreeWayPatchesMatchKubernetes(t *testing.T) {
	documents := openAPISchemas(t)
	forEachKind(t, func(t *testing.T, s patchedKind, g patchGenerator) {
		o := g.object(s.Schema, patchDepth)
		original := marshal(t, o)
		modified, current := marshal(t, g.change(o, s.Schema, patchDepth)),
			marshal(t, g.change(o, s.Schema, patchDepth))
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
			t.Errorf("%s to %s over %s: with our OpenAPI\n got %s, %v,\nwant %s", original, modified, current, same,
				err, patch)
		}
	})
}

// openAPISchemas returns the schemas of the default resources by kind. It reads them as
// kubectl does.
func openAPISchemas(t *testing.T) map[string]theirs.LookupPatchMeta {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(testapi.Start(t).Config(testapi.HTTP2))
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
			t.Fatalf("got schemas %v, want %s among them", slices.Collect(maps.Keys(schemas)), r.Schema.Name)
		}
		all[r.Kind] = theirs.PatchMetaFromOpenAPIV3{Schema: schemas[r.Schema.Name], SchemaList: schemas}
	}
	return all
}

// The documentation of package strategicpatch lists these differences. In most of them
// Kubernetes silently loses data.
func TestKnownPatchDifferences(t *testing.T) {
	pod := patchedKind{kubeapi.Resource{Schema: schema.Kubernetes("io.k8s.api.core.v1.Pod")}, goTypes["Pod"]}
	const refused = "refused"
	for _, c := range []struct{ original, patch, theirs, ours string }{
		{
			`{}`, `{"spec":{"dnsConfig":{"$patch":"replace","searches":["a"]}}}`, `{"spec":{}}`,
			`{"spec":{"dnsConfig":{"searches":["a"]}}}`,
		},
		{
			`{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`,
			`{"spec":{"containers":[{"name":"a","image":"x","$patch":"replace"}]}}`,
			`{"spec":{"containers":[]}}`, refused,
		},
		{
			`{"spec":{"affinity":{"podAffinity":{}}}}`,
			`{"spec":{"affinity":{"$patch":"replace","nodeAffinity":{"$patch":"delete"},"podAffinity":null}}}`,
			`{"spec":{"affinity":{"nodeAffinity":{"$patch":"delete"},"podAffinity":null}}}`, `{"spec":{"affinity":{}}}`,
		},
		{
			`{"spec":{"tolerations":[{"key":"a"}]}}`, `{"spec":{"tolerations":[{"$patch":"replace"},{"key":"b"}]}}`,
			`{"spec":{"tolerations":[{"$patch":"replace"},{"key":"b"}]}}`, `{"spec":{"tolerations":[{"key":"b"}]}}`,
		},
		{
			`{"spec":{"containers":[]}}`,
			`{"spec":{"containers":[{"name":"a","env":[{"name":"b","$patch":"delete"}],"resources":{"limits":{"cpu":null}}}]}}`,
			`{"spec":{"containers":[{"env":[{"$patch":"delete","name":"b"}],"name":"a","resources":{"limits":{"cpu":null}}}]}}`,
			`{"spec":{"containers":[{"name":"a","env":[],"resources":{"limits":{}}}]}}`,
		},
		{
			`{"spec":{}}`, `{"spec":{"$setElementOrder/containers":[],"containers":[]}}`, refused,
			`{"spec":{"containers":[]}}`,
		},
		{`{"spec":{"other":{"a":1}}}`, `{"spec":{"other":{"b":2}}}`, refused, `{"spec":{"other":{"a":1,"b":2}}}`},
		{
			`{"spec":{"containers":[{"image":"x"}]}}`, `{"spec":{"containers":[{"name":"a"}]}}`,
			refused, `{"spec":{"containers":[{"name":"a"},{"image":"x"}]}}`,
		},
		{
			`{"spec":{"dnsConfig":{}}}`, `{"spec":{"dnsConfig":{"$patch":"merge","searches":["a"]}}}`, refused,
			`{"spec":{"dnsConfig":{"searches":["a"]}}}`,
		},
		{`{"spec":{}}`, `{"$patch":"delete"}`, `{}`, refused},
		{`{"spec":{}}`, `{"$patch":"replace","kind":"Pod"}`, `{"kind":"Pod"}`, refused},
	} {
		result := func(out []byte, err error) string {
			if err != nil {
				return refused
			}
			return string(out)
		}
		if got := result(theirs.StrategicMergePatch([]byte(c.original), []byte(c.patch), pod.goType)); got != c.theirs {
			t.Errorf("%s with %s: Kubernetes now returns %s, was %s", c.original, c.patch, got, c.theirs)
		}
		if got := result(strategicpatch.Apply([]byte(c.original), []byte(c.patch), pod.Schema)); got != c.ours {
			t.Errorf("%s with %s: got %s, want %s", c.original, c.patch, got, c.ours)
		}
	}
}
