package kubernetes

import (
	"maps"
	"slices"

	"github.com/listwatch/listwatch/kubeapi/schema"
)

// patch generates a random patch of o. Many patches together contain all directives in all
// combinations that Kubernetes documents.
func (g patchGenerator) patch(o jsonObject, t *schema.Type, depth int) jsonObject {
	p := jsonObject{}
	for name, v := range inOrder(o) {
		if g.chance(50) {
			g.patchField(p, name, v, t.Field(name), depth-1)
		}
	}
	for name, v := range inOrder(g.object(t, depth)) {
		if _, exists := o[name]; !exists && g.chance(30) {
			p[name] = v
			if g.chance(15) {
				p[name] = nil
			}
		}
	}
	return p
}

func (g patchGenerator) patchField(p jsonObject, name string, old any, f schema.Field, depth int) {
	nested, isObject := old.(jsonObject)
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

// patchObject generates a patch of an existing nested object.
func (g patchGenerator) patchObject(o jsonObject, t *schema.Type, depth int) jsonObject {
	switch {
	case g.chance(6):
		return jsonObject{"$patch": "delete"}
	case g.chance(8):
		p := g.object(t, depth)
		p["$patch"] = "replace"
		return p
	case g.chance(10):
		// p has no directives yet, so all its keys are names of fields to retain.
		p := g.object(t, depth)
		retained := slices.Sorted(maps.Keys(p))
		for name := range inOrder(o) {
			if _, exists := p[name]; !exists && g.chance(50) {
				retained = append(retained, name)
			}
		}
		p["$retainKeys"] = toAny(retained)
		return p
	}
	return g.patch(o, t, depth)
}

// patchKeyed adds to p a patch of a list whose elements are merged by key.
func (g patchGenerator) patchKeyed(p jsonObject, name string, list []any, f schema.Field, depth int) {
	had := map[any]jsonObject{}
	for _, v := range list {
		had[v.(jsonObject)[f.MergeKey]] = v.(jsonObject)
	}
	elements, order := []any{}, []any{}
	deleted := map[any]bool{}
	for _, key := range g.mergeKeys(f, g.IntN(4)) {
		old, exists := had[key]
		switch {
		case exists && g.chance(25):
			elements = append(elements, jsonObject{f.MergeKey: key, "$patch": "delete"})
			deleted[key] = true
			continue
		case exists:
			e := g.patch(old, f.Type, depth)
			e[f.MergeKey] = key
			elements = append(elements, e)
		default:
			e := g.object(f.Type, depth)
			e[f.MergeKey] = key
			elements = append(elements, e)
		}
		order = append(order, jsonObject{f.MergeKey: key})
	}
	switch {
	case g.chance(8):
		elements = append(elements, jsonObject{"$patch": "replace"})
	case g.chance(40):
		for _, key := range g.mergeKeys(f, 5) {
			at := slices.IndexFunc(order, func(v any) bool { return v.(jsonObject)[f.MergeKey] == key })
			if at < 0 && !deleted[key] && had[key] != nil && g.chance(70) {
				order = slices.Insert(order, g.IntN(len(order)+1), any(jsonObject{f.MergeKey: key}))
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

// patchSet adds to p a patch of a list of scalars that is merged, not replaced.
func (g patchGenerator) patchSet(p jsonObject, name string, list []any) {
	added := toAny(g.words())
	if len(added) > 0 {
		p[name] = added
	}
	if len(list) == 0 {
		return
	}
	if deleted := slices.DeleteFunc(toAny(g.words()),
		func(v any) bool { return slices.Contains(added, v) }); len(deleted) > 0 {
		p["$deleteFromPrimitiveList/"+name] = deleted
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
