package kubernetes

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/listwatch/listwatch/kubeapi/schema"
)

// A patchGenerator generates random objects and patches. It uses only a few names, so that
// patches often match members of the objects.
type patchGenerator struct{ *rand.Rand }

type jsonObject = map[string]any

func (g patchGenerator) chance(percent int) bool { return g.IntN(100) < percent }

func (g patchGenerator) word() string { return string(rune('a' + g.IntN(5))) }

// object returns an object of type t.
func (g patchGenerator) object(t *schema.Type, depth int) jsonObject {
	o := jsonObject{}
	for _, name := range g.names(t, 3) {
		if v := g.field(t.Field(name), depth-1); v != nil {
			o[name] = v
		}
	}
	return o
}

// names returns member names for an object of type t. If t has more than 2*most fields, names
// chooses some of them at random, and returns about as many names as the value of most.
func (g patchGenerator) names(t *schema.Type, most int) []string {
	if t.AdditionalProperties != nil {
		return g.words()
	}
	all := slices.Sorted(maps.Keys(t.Fields))
	if len(all) > 2*most {
		all = slices.DeleteFunc(all, func(name string) bool {
			// Prefer merged fields, and the fields that contain them.
			f := t.Fields[name]
			return !g.chance(100*most/len(all)) && !(f.Merge && g.chance(40)) &&
				!(name == "spec" || name == "template" || name == "metadata")
		})
	}
	return all
}

func (g patchGenerator) words() []string {
	words := []string{"a", "b", "c", "d", "e"}
	g.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:g.IntN(4)]
}

// field returns a value for f with at most depth nested levels, or nil if that is impossible.
func (g patchGenerator) field(f schema.Field, depth int) any {
	switch {
	case f.List && f.MergeKey != "":
		return g.keyed(f, depth)
	case f.List && f.Merge:
		return toAny(g.words())
	case f.List:
		list := []any{}
		for range 1 + g.IntN(2) {
			if v := g.field(schema.Field{Type: f.Type, Scalar: f.Scalar}, depth); v != nil {
				list = append(list, v)
			}
		}
		return list
	case f.Type != nil:
		if depth <= 0 {
			return nil
		}
		return g.object(f.Type, depth)
	}
	return g.scalar(f.Scalar)
}

func (g patchGenerator) keyed(f schema.Field, depth int) any {
	if depth <= 0 {
		return nil
	}
	list := []any{}
	for _, key := range g.mergeKeys(f, 1+g.IntN(4)) {
		o := g.object(f.Type, depth)
		o[f.MergeKey] = key
		list = append(list, o)
	}
	return list
}

// mergeKeys returns n different keys of a merged list.
func (g patchGenerator) mergeKeys(f schema.Field, n int) []any {
	var keys []any
	for i := range 5 {
		if f.Type.Field(f.MergeKey).Scalar == schema.Int32 {
			keys = append(keys, 80+i)
		} else {
			keys = append(keys, string(rune('a'+i)))
		}
	}
	g.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys[:n]
}

func (g patchGenerator) scalar(s schema.Scalar) any {
	switch s {
	case schema.Integer, schema.Int32:
		return g.IntN(5)
	case schema.Boolean:
		return g.chance(50)
	case schema.Time, schema.MicroTime:
		return "2026-01-02T03:04:05.000000Z" // valid as metav1.Time and as metav1.MicroTime
	case schema.Bytes:
		return "AQ=="
	case schema.IntOrString:
		if g.chance(50) {
			return g.IntN(5)
		}
		return "25%"
	case schema.Quantity:
		return []any{"500m", "1", "2Gi"}[g.IntN(3)]
	case "":
		return nil // the tests do not compare fields without a type
	}
	return g.word()
}

func toAny[T any](list []T) []any {
	out := []any{}
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

// change returns a random modification of o.
func (g patchGenerator) change(o jsonObject, t *schema.Type, depth int) jsonObject {
	out := jsonObject{}
	for name, v := range inOrder(o) {
		f := t.Field(name)
		switch nested, isObject := v.(jsonObject); {
		case g.chance(12):
			// Leave the field out.
		case isObject:
			out[name] = g.change(nested, f.Type, depth-1)
		case f.MergeKey != "":
			out[name] = g.changeList(v.([]any), f, depth-1)
		case g.chance(25):
			if v := g.field(f, depth-1); v != nil {
				out[name] = v
			}
		default:
			out[name] = v
		}
	}
	for name, v := range inOrder(g.object(t, depth)) {
		if _, exists := out[name]; !exists && g.chance(40) {
			out[name] = v
		}
	}
	return out
}

func (g patchGenerator) changeList(list []any, f schema.Field, depth int) []any {
	out := []any{}
	had := map[any]bool{}
	for _, v := range list {
		key := v.(jsonObject)[f.MergeKey]
		had[key] = true
		if g.chance(20) {
			continue
		}
		o := g.change(v.(jsonObject), f.Type, depth)
		o[f.MergeKey] = key
		out = append(out, o)
	}
	if added, ok := g.keyed(f, depth).([]any); ok {
		for _, v := range added {
			if !had[v.(jsonObject)[f.MergeKey]] && g.chance(50) {
				out = append(out, v)
			}
		}
	}
	if g.chance(30) {
		g.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return out
}

// inOrder iterates over o in sorted order, so that a seed always generates the same patches.
func inOrder(o jsonObject) func(yield func(string, any) bool) {
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if !yield(name, o[name]) {
				return
			}
		}
	}
}
