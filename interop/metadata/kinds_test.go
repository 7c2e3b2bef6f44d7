package metadata

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

// A maker makes objects at random that are of the types that they should be.
type maker struct{ *rand.Rand }

func (m maker) object(t *schema.Type, depth int) map[string]any {
	o := map[string]any{}
	if t.AdditionalProperties != nil {
		for range m.IntN(3) {
			o[string(rune('a'+m.IntN(5)))] = m.field(*t.AdditionalProperties, depth)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Fields)) {
		if chance := 1 + 4/len(t.Fields); m.IntN(8) < chance {
			o[name] = m.field(t.Fields[name], depth)
		}
	}
	return o
}

func (m maker) field(f schema.Field, depth int) any {
	if depth == 0 {
		return nil
	}
	if !f.List {
		return m.one(f, depth)
	}
	list := []any{}
	for range m.IntN(3) {
		list = append(list, m.one(f, depth))
	}
	return list
}

func (m maker) one(f schema.Field, depth int) any {
	if f.Type != nil {
		return m.object(f.Type, depth-1)
	}
	of := map[schema.Scalar][]string{
		"": {`{}`}, schema.String: {`""`, `"x"`}, schema.Integer: {`0`, `-7`, `9223372036854775807`}, schema.Int32: {`0`, `2147483647`},
		schema.Boolean: {`true`, `false`}, schema.Time: {`"2026-01-02T15:04:05Z"`}, schema.MicroTime: {`"2026-01-02T15:04:05.000000Z"`}, schema.Bytes: {`""`, `"aGk="`},
		schema.IntOrString: {`7`, `"x"`}, schema.Quantity: {`"1"`, `2`, `"1.5Gi"`, `"1e3"`, `".5"`, `"1."`, `"-7m"`, `" 1 "`, `1e2`, `-0.5`, `"7E"`},
	}[f.Scalar]
	return json.RawMessage(of[m.IntN(len(of))])
}

// Property: of the default resources too, what can be written can be decoded by a typed client, and what such a client can decode can be
// written.
func TestDefaultResourcesAreAcceptedIfTypedClientsCanDecodeThem(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(3, 4))}
	decode := scheme.Codecs.UniversalDeserializer()
	for _, r := range kubeapi.DefaultResources() {
		const runs = 5000
		readable := 0
		for range runs {
			o := m.object(r.Schema, 8)
			putOdd(o, m.Rand)
			o["kind"], o["apiVersion"] = r.Kind, r.APIVersion() // else nobody knows what it is to be
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			_, _, theirs := decode.Decode(data, nil, nil)
			if theirs == nil {
				readable++
			}
			ours := r.Schema.Check(data)
			if ours != nil && strings.HasSuffix(ours.Error(), "want a string in base64, got a list") {
				continue // Go also takes a list of numbers, which is nowhere in the API
			}
			if (ours != nil) != (theirs != nil) {
				t.Errorf("%s:\nwe say %v\nclient-go says %v", data, ours, theirs)
			}
		}
		if readable < runs/20 || readable > runs*19/20 {
			t.Errorf("%s: %d of %d can be decoded, want some of both", r.Kind, readable, runs)
		}
	}
}
