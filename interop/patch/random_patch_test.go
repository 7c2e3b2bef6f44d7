package patch

import (
	"maps"
	"slices"

	"github.com/listwatch/listwatch/kubeapi/schema"
)

// patch makes a patch by hand of o: with all directives, in every combination of which Kubernetes says what it means.
func (g generator) patch(o object, t *schema.Type, depth int) object {
	p := object{}
	for name, v := range sorted(o) {
		if g.chance(50) {
			g.patchField(p, name, v, t.Field(name), depth-1)
		}
	}
	for name, v := range sorted(g.object(t, depth)) {
		if _, there := o[name]; !there && g.chance(30) {
			p[name] = v
			if g.chance(15) {
				p[name] = nil
			}
		}
	}
	return p
}

func (g generator) patchField(p object, name string, old any, f schema.Field, depth int) {
	nested, isObject := old.(object)
	list, isList := old.([]any)
	switch {
	case g.chance(10):
		p[name] = nil
	case isObject:
		p[name] = g.patchObject(nested, f.Type, depth)
	case isList && f.MergeKey != "":
		g.patchKeyed(p, name, list, f, depth)
	case isList && f.Merge:
		g.patchSet(p, name, list)
	default:
		if v := g.field(f, depth); v != nil {
			p[name] = v
		}
	}
}

// patchObject makes a patch of an object that is there.
func (g generator) patchObject(o object, t *schema.Type, depth int) object {
	switch {
	case g.chance(6):
		return object{"$patch": "delete"}
	case g.chance(8):
		p := g.object(t, depth)
		p["$patch"] = "replace"
		return p
	case g.chance(10):
		// Only what is plain, so that the names to retain are easily said.
		p := g.object(t, depth)
		retained := slices.Sorted(maps.Keys(p))
		for name := range sorted(o) {
			if _, there := p[name]; !there && g.chance(50) {
				retained = append(retained, name)
			}
		}
		p["$retainKeys"] = anys(retained)
		return p
	}
	return g.patch(o, t, depth)
}

func (g generator) patchKeyed(p object, name string, list []any, f schema.Field, depth int) {
	had := map[any]object{}
	for _, v := range list {
		had[v.(object)[f.MergeKey]] = v.(object)
	}
	elements, order := []any{}, []any{}
	deleted := map[any]bool{}
	for _, key := range g.keys(f, g.IntN(4)) {
		old, there := had[key]
		switch {
		case there && g.chance(25):
			elements = append(elements, object{f.MergeKey: key, "$patch": "delete"})
			deleted[key] = true
			continue
		case there:
			e := g.patch(old, f.Type, depth)
			e[f.MergeKey] = key
			elements = append(elements, e)
		default:
			e := g.object(f.Type, depth)
			e[f.MergeKey] = key
			elements = append(elements, e)
		}
		order = append(order, object{f.MergeKey: key})
	}
	switch {
	case g.chance(8):
		elements = append(elements, object{"$patch": "replace"})
	case g.chance(40):
		for _, key := range g.keys(f, 5) {
			at := slices.IndexFunc(order, func(v any) bool { return v.(object)[f.MergeKey] == key })
			if at < 0 && !deleted[key] && had[key] != nil && g.chance(70) {
				order = slices.Insert(order, g.IntN(len(order)+1), any(object{f.MergeKey: key}))
			}
		}
		if len(order) > 0 {
			p["$setElementOrder/"+name] = order
		}
	}
	if len(elements) > 0 || g.chance(20) {
		p[name] = elements
	}
}

func (g generator) patchSet(p object, name string, list []any) {
	added := anys(g.words())
	if len(added) > 0 {
		p[name] = added
	}
	if len(list) == 0 {
		return
	}
	if gone := slices.DeleteFunc(anys(g.words()), func(v any) bool { return slices.Contains(added, v) }); len(gone) > 0 {
		p["$deleteFromPrimitiveList/"+name] = gone
	}
	if g.chance(50) {
		order := slices.Clone(added)
		for _, v := range list {
			if !slices.Contains(order, v) && g.chance(60) {
				order = slices.Insert(order, g.IntN(len(order)+1), v)
			}
		}
		if len(order) > 0 {
			p["$setElementOrder/"+name] = order
		}
	}
}
