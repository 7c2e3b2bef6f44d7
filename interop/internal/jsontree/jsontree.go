// Package jsontree walks through two decoded JSON values at once.
package jsontree

import (
	"fmt"
	"maps"
	"slices"
)

// Walk compares a and b, the values at path. If both are objects, or both are arrays of the same
// length, it walks through their members or elements. Otherwise it calls visit. Members are visited
// in the order of their names, and a missing member is nil.
func Walk(path string, a, b any, visit func(path string, a, b any)) {
	switch va := a.(type) {
	case map[string]any:
		vb, ok := b.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(va)
		maps.Copy(names, vb)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			Walk(path+"."+name, va[name], vb[name], visit)
		}
		return
	case []any:
		vb, ok := b.([]any)
		if !ok || len(va) != len(vb) {
			break
		}
		for i := range va {
			Walk(fmt.Sprintf("%s[%d]", path, i), va[i], vb[i], visit)
		}
		return
	}
	visit(path, a, b)
}
