package typed

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
)

// Projection returns the projection that shows what T holds: the members that encoding/json decodes
// into T. With it, a server sends nothing that a program with T would drop:
//
//	nodes := &informer.Informer[Node]{
//		Source: source, Selection: listwatch.Selection{Projection: typed.Projection[Node]()},
//	}
//
// Some members are shown whole: maps, interfaces, a [json.RawMessage], types that decode
// themselves, and the inner values of a recursive type. If T has more than 64 members, the deepest
// ones are replaced by the members that contain them. If T is not a struct, the projection shows
// whole objects.
//
// Names must be spelled as in the objects, although encoding/json also accepts another case.
func Projection[T any]() listwatch.Projection {
	paths := memberPaths(reflect.TypeFor[T](), nil, nil)
	for depth := maxDepth; len(paths) > maxPaths || depth == maxDepth; depth-- {
		for i, p := range paths {
			paths[i] = p[:min(len(p), depth)]
		}
		slices.SortFunc(paths, slices.Compare)
		paths = slices.CompactFunc(paths, slices.Equal)
	}
	texts := make([]string, len(paths))
	for i, p := range paths {
		for _, name := range p {
			texts[i] += "['" + name + "']"
		}
	}
	// A struct of more than 64 members without structs cannot be expressed. Whole objects are
	// always right.
	projection, _ := listwatch.ParseProjection(strings.Join(texts, ","))
	return projection
}

// The limits of a [listwatch.Projection].
const (
	maxPaths = 64
	maxDepth = 16
)

var decoders = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}

// memberPaths returns the paths of the members below path that encoding/json decodes into t. If t
// has no members, it returns path itself. above holds the types that contain t.
func memberPaths(t reflect.Type, path []string, above []reflect.Type) (paths [][]string) {
	isWhole := func(d reflect.Type) bool { return reflect.PointerTo(t).Implements(d) }
	switch {
	case slices.ContainsFunc(decoders, isWhole) || slices.Contains(above, t):
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return memberPaths(t.Elem(), path, above)
	case t.Kind() == reflect.Struct:
		above = append(slices.Clone(above), t)
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if strings.ContainsAny(name, "\"'\\`") {
				name = "" // as in encoding/json
			}
			switch {
			case f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous:
			case f.Anonymous && name == "":
				paths = append(paths, memberPaths(f.Type, path, above)...)
			case name == "":
				paths = append(paths, memberPaths(f.Type, append(slices.Clone(path), f.Name), above)...)
			default:
				paths = append(paths, memberPaths(f.Type, append(slices.Clone(path), name), above)...)
			}
		}
		return paths
	}
	return [][]string{path}
}
