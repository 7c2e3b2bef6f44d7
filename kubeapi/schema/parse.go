package schema

import (
	_ "embed" // for kubernetes.txt
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
)

// kubernetes is the table of types in package k8s.io/api. A test in module interop
// generates it and checks that it is current.
//
//go:embed kubernetes.txt
var kubernetes string

// types parses the table once.
var types = sync.OnceValues(func() (map[string]*Type, error) { return Parse(kubernetes) })

// Kubernetes returns the type with the given OpenAPI name, such as
// "io.k8s.api.core.v1.Pod", or nil if it is unknown. It knows the types of pods, services,
// configmaps, deployments, namespaces and events, and the types that they contain.
func Kubernetes(name string) *Type {
	all, err := types()
	if err != nil {
		return nil // a test checks that the table is valid
	}
	return all[name]
}

// Parse parses types from text. The name of a type is on a line of its own, and the lines of its
// fields follow. Each of these starts with a tab and consists of the name, the type and, if the
// field has one, the strategy of patches:
//
//	example.v1.Widget
//		labels map[string]string
//		parts []example.v1.Part merge=name,retainKeys
//		tags []string merge
//
// For server-side apply, the strategies keys=KEY+KEY, set, atomic and default=TEXT set the Keys,
// Set, Atomic and Default of a [Field]. The word atomic after the name of a type sets the Atomic of
// the [Type].
//
// A type is a [Scalar], "any", or the name of a type, which must contain a dot. It may be
// preceded by map[string] or []. Lines that start with # are comments. Invalid text is an
// error of code Invalid.
func Parse(text string) (map[string]*Type, error) {
	all := map[string]*Type{}
	typeOf := func(name string) *Type {
		if all[name] == nil {
			all[name] = &Type{Name: name}
		}
		return all[name]
	}
	var current *Type
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		field, isField := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case !isField:
			name, atomic := strings.CutSuffix(line, " atomic")
			current = typeOf(name)
			current.Fields, current.Atomic = map[string]Field{}, atomic
		case current == nil:
			return nil, lineError(n, "a field precedes the first type")
		default:
			if err := current.parseField(field, typeOf); err != nil {
				return nil, lineError(n, err.Error())
			}
		}
	}
	for name, t := range all {
		if t.Fields == nil {
			return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("the type %s is used but not defined", name)}
		}
	}
	return all, nil
}

func lineError(n int, why string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("line %d: %s", n, why)}
}

func (t *Type) parseField(line string, typeOf func(string) *Type) error {
	words := strings.Split(line, " ")
	if len(words) < 2 || len(words) > 3 {
		return fmt.Errorf("%q: must be a name, a type and optionally a strategy", line)
	}
	f, err := parseType(words[1], typeOf)
	if err != nil {
		return err
	}
	if len(words) == 3 {
		if err := f.parseStrategy(words[2]); err != nil {
			return err
		}
	}
	t.Fields[words[0]] = f
	return nil
}

func parseType(s string, typeOf func(string) *Type) (Field, error) {
	if of, ok := strings.CutPrefix(s, "map[string]"); ok {
		f, err := parseType(of, typeOf)
		return Field{Type: &Type{AdditionalProperties: &f}}, err
	}
	var f Field
	s, f.List = strings.CutPrefix(s, "[]")
	scalars := []Scalar{String, Integer, Int32, Number, Boolean, Time, MicroTime, Bytes, IntOrString, Quantity}
	switch {
	case s == "any":
	case strings.Contains(s, "."):
		f.Type = typeOf(s)
	case slices.Contains(scalars, Scalar(s)):
		f.Scalar = Scalar(s)
	default:
		return Field{}, fmt.Errorf("%q is not a type; must be any, one of %v, or a name with a dot", s, scalars)
	}
	return f, nil
}

func (f *Field) parseStrategy(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		name, key, _ := strings.Cut(word, "=")
		switch {
		case name == "merge" && f.List:
			f.Merge, f.MergeKey = true, key
		case word == "retainKeys":
			f.RetainKeys = true
		case name == "keys" && f.List && key != "":
			f.Keys = strings.Split(key, "+")
		case word == "set" && f.List:
			f.Set = true
		case word == "atomic":
			f.Atomic = true
		case name == "default" && f.Scalar == String && key != "":
			f.Default = key
		default:
			return fmt.Errorf("%q is not a strategy; must be merge, merge=KEY, set or keys=KEY+KEY (for lists), retainKeys, atomic or default=TEXT (for strings)", word)
		}
	}
	return nil
}
