package kubernetes

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// A typedGenerator generates random objects whose fields have the right types.
type typedGenerator struct{ *rand.Rand }

func (g typedGenerator) object(t *schema.Type, depth int) map[string]any {
	o := map[string]any{}
	if t.AdditionalProperties != nil {
		for range g.IntN(3) {
			o[string(rune('a'+g.IntN(5)))] = g.field(*t.AdditionalProperties, depth)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Fields)) {
		if chance := 1 + 4/len(t.Fields); g.IntN(8) < chance {
			o[name] = g.field(t.Fields[name], depth)
		}
	}
	return o
}

func (g typedGenerator) field(f schema.Field, depth int) any {
	if depth == 0 {
		return nil
	}
	if !f.List {
		return g.value(f, depth)
	}
	list := []any{}
	for range g.IntN(3) {
		list = append(list, g.value(f, depth))
	}
	return list
}

func (g typedGenerator) value(f schema.Field, depth int) any {
	if f.Type != nil {
		return g.object(f.Type, depth-1)
	}
	values := map[schema.Scalar][]string{
		"": {`{}`}, schema.String: {`""`, `"x"`}, schema.Integer: {`0`, `-7`, `9223372036854775807`},
		schema.Int32:   {`0`, `2147483647`},
		schema.Boolean: {`true`, `false`}, schema.Time: {`"2026-01-02T15:04:05Z"`},
		schema.MicroTime: {`"2026-01-02T15:04:05.000000Z"`}, schema.Bytes: {`""`, `"aGk="`},
		schema.IntOrString: {`7`, `"x"`},
		schema.Quantity:    {`"1"`, `2`, `"1.5Gi"`, `"1e3"`, `".5"`, `"1."`, `"-7m"`, `" 1 "`, `1e2`, `-0.5`, `"7E"`},
	}[f.Scalar]
	return json.RawMessage(values[g.IntN(len(values))])
}

// Property: the schema of a default resource accepts exactly the objects that a typed client can
// decode.
func TestResourcesAreAcceptedIfClientsDecodeThem(t *testing.T) {
	m := typedGenerator{rand.New(rand.NewPCG(3, 4))}
	decode := scheme.Codecs.UniversalDeserializer()
	for _, r := range kubeapi.DefaultResources() {
		const runs = 5000
		decodable := 0
		for range runs {
			o := m.object(r.Schema, 8)
			replaceWithOddValue(o, m.Rand)
			o["kind"], o["apiVersion"] = r.Kind, r.APIVersion() // required by the decoder
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			_, _, theirs := decode.Decode(data, nil, nil)
			if theirs == nil {
				decodable++
			}
			_, ours := r.Schema.Check(data)
			if ours != nil && strings.HasSuffix(ours.Error(), "want a base64 string, got a list") {
				continue // Go also decodes a list of numbers, a form that the API does not use
			}
			if (ours != nil) != (theirs != nil) {
				t.Errorf("%s:\nour error: %v\nclient-go's error: %v", data, ours, theirs)
			}
		}
		if decodable < runs/20 || decodable > runs*19/20 {
			t.Errorf("%s: %d of %d objects can be decoded, want between 5 and 95 %%", r.Kind, decodable, runs)
		}
	}
}
