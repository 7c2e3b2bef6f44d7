package patch

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/listwatch/listwatch/kubeapi/schema"
)

// A generator makes objects and patches at random. Their words are few, so that what one names the other often has.
type generator struct{ *rand.Rand }

type object = map[string]any

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g generator) word() string { return string(rune('a' + g.IntN(5))) }

// object makes an object of type t.
func (g generator) object(t *schema.Type, depth int) object {
	o := object{}
	for _, name := range g.names(t, 3) {
		if v := g.field(t.Field(name), depth-1); v != nil {
			o[name] = v
		}
	}
	return o
}

// names returns a few names of fields.
func (g generator) names(t *schema.Type, most int) []string {
	if t.AdditionalProperties != nil {
		return g.words()
	}
	all := slices.Sorted(maps.Keys(t.Fields))
	if len(all) > 2*most {
		all = slices.DeleteFunc(all, func(name string) bool {
			// What is merged, and what leads there, is why we are here.
			f := t.Fields[name]
			return !g.chance(100*most/len(all)) && !(f.Merge && g.chance(40)) && !(name == "spec" || name == "template" || name == "metadata")
		})
	}
	return all
}

func (g generator) words() []string {
	words := []string{"a", "b", "c", "d", "e"}
	g.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:g.IntN(4)]
}

// field makes a value for f, nil where it had to be deeper than depth.
func (g generator) field(f schema.Field, depth int) any {
	switch {
	case f.List && f.MergeKey != "":
		return g.keyed(f, depth)
	case f.List && f.Merge:
		return anys(g.words())
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

func (g generator) keyed(f schema.Field, depth int) any {
	if depth <= 0 {
		return nil
	}
	list := []any{}
	for _, key := range g.keys(f, 1+g.IntN(4)) {
		o := g.object(f.Type, depth)
		o[f.MergeKey] = key
		list = append(list, o)
	}
	return list
}

// keys returns different keys of a merged list.
func (g generator) keys(f schema.Field, n int) []any {
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

func (g generator) scalar(s schema.Scalar) any {
	switch s {
	case schema.Integer, schema.Int32:
		return g.IntN(5)
	case schema.Boolean:
		return g.chance(50)
	case schema.Time, schema.MicroTime:
		return "2026-01-02T03:04:05.000000Z" // as a metav1.Time and as a metav1.MicroTime
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
		return nil // of fields that hold anything, no type says more than we do
	}
	return g.word()
}

func anys[T any](list []T) []any {
	out := []any{}
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

// changed returns what somebody may have made of o.
func (g generator) changed(o object, t *schema.Type, depth int) object {
	out := object{}
	for name, v := range sorted(o) {
		f := t.Field(name)
		switch nested, isObject := v.(object); {
		case g.chance(12):
			// It is gone.
		case isObject:
			out[name] = g.changed(nested, f.Type, depth-1)
		case f.MergeKey != "":
			out[name] = g.changedList(v.([]any), f, depth-1)
		case g.chance(25):
			if v := g.field(f, depth-1); v != nil {
				out[name] = v
			}
		default:
			out[name] = v
		}
	}
	for name, v := range sorted(g.object(t, depth)) {
		if _, there := out[name]; !there && g.chance(40) {
			out[name] = v
		}
	}
	return out
}

func (g generator) changedList(list []any, f schema.Field, depth int) []any {
	out := []any{}
	had := map[any]bool{}
	for _, v := range list {
		key := v.(object)[f.MergeKey]
		had[key] = true
		if g.chance(20) {
			continue
		}
		o := g.changed(v.(object), f.Type, depth)
		o[f.MergeKey] = key
		out = append(out, o)
	}
	if added, ok := g.keyed(f, depth).([]any); ok {
		for _, v := range added {
			if !had[v.(object)[f.MergeKey]] && g.chance(50) {
				out = append(out, v)
			}
		}
	}
	if g.chance(30) {
		g.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return out
}

// sorted ranges over o in an order that a seed repeats.
func sorted(o object) func(yield func(string, any) bool) {
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if !yield(name, o[name]) {
				return
			}
		}
	}
}
