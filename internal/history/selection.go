package history

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A selection is the part of a collection that a query selects: a namespace and name, selectors,
// and the projection of the objects.
type selection struct {
	// An empty namespace matches every namespace, and an empty name matches every name.
	namespace, name string
	labels          listwatch.LabelSelector
	fields          listwatch.FieldSelector
	projection      listwatch.Projection
	// mask is the projection of a feed. The differences of a record are compared with it. It is
	// nil if the feed has no projection.
	mask *rawjson.Mask
}

// A selectionKey identifies a selection by the text of its parts.
type selectionKey struct{ namespace, name, labels, fields, projection string }

func newSelection(q listwatch.Query) selection {
	s := selection{q.Namespace, q.Name, q.Labels, q.Fields, q.Projection, nil}
	// A field selector for the namespace or the name narrows the scope of the query. matches
	// applies the field selector as well, so that a contradiction selects no object.
	if v, ok := s.fields.Equality(listwatch.FieldNamespace); ok && s.namespace == "" {
		s.namespace = v
	}
	if v, ok := s.fields.Equality(listwatch.FieldName); ok && s.name == "" {
		s.name = v
	}
	return s
}

func (s *selection) key() selectionKey {
	return selectionKey{s.namespace, s.name, s.labels.String(), s.fields.String(), s.projection.String()}
}

func (k selectionKey) bytes() int {
	return len(k.namespace) + len(k.name) + len(k.labels) + len(k.fields) + len(k.projection)
}

func (s *selection) matches(o *listwatch.Object) bool {
	return o != nil &&
		(s.namespace == "" || o.Key.Namespace == s.namespace) &&
		(s.name == "" || o.Key.Name == s.name) &&
		s.labels.Matches(o.Labels) && s.fields.Matches(o)
}

// isSelective reports whether s selects by criteria other than the namespace.
func (s *selection) isSelective() bool {
	return s.name != "" || !s.labels.Empty() || !s.fields.Empty()
}

// transition returns the effect of r on s. The effect depends on whether the object was selected
// before, not on whether the object existed (conformance case select/leaves-selector). A change
// that the projection hides has no effect.
func (s *selection) transition(r *record) transition {
	before, after := s.matches(r.Old), s.matches(r.New)
	switch {
	case before && after && s.hides(r):
		return outside
	case before && after:
		return change
	case after:
		return enter
	case before:
		return exit
	}
	return outside
}

// hides reports whether the projection of s hides the update r.
func (s *selection) hides(r *record) bool {
	if s.mask != nil && r.differences != nil {
		return s.mask.HidesDifferences(r.differences, r.Old.Data, r.New.Data)
	}
	return s.projection.Hides(r.Old, r.New)
}

// scan calls f with the objects of t in the namespace of s, in key order, until f returns false. It
// skips the keys that are not greater than after. If s has a namespace and a name, it only visits
// the object with that name. It does not apply selectors. Its cost depends on the size of the
// namespace, not of t.
func (s *selection) scan(t tree, after listwatch.Key, f func(o *listwatch.Object) bool) {
	first := listwatch.Key{Namespace: s.namespace}
	if s.namespace != "" {
		first.Name = s.name
	}
	if first.Compare(after) < 0 {
		first = after
	}
	isFirst := true // no later object can have the key after, so do not compare it
	t.Ascend(&listwatch.Object{Key: first}, func(o *listwatch.Object) bool {
		if s.namespace != "" && (o.Key.Namespace != s.namespace || s.name != "" && o.Key.Name != s.name) {
			return false
		}
		if isFirst {
			isFirst = false
			if o.Key == after {
				return true
			}
		}
		return f(o)
	})
}

// A term is a property of objects, such as a label. Feeds are indexed by terms.
type term struct {
	kind       termKind
	key, value string
}

type termKind uint8

const (
	termAny       termKind = iota // every object has this term
	termObject                    // key is a namespace, value a name
	termName                      // value is a name in any namespace
	termNamespace                 // value is a namespace
	termLabel                     // key and value of a label
	// key is the path of a field, and value is the value of that field
	termField
)

// isBroad reports whether many objects have t.
func (t term) isBroad() bool { return t.kind == termAny || t.kind == termNamespace }

// maxTerms is the maximum number of terms of a feed. A selector that allows more values of a label
// is not indexed by that label.
const maxTerms = 16

// terms returns the terms by which s is indexed. Every object that s selects has at least
// one of them.
func (s *selection) terms() []term {
	switch {
	case s.namespace != "" && s.name != "":
		return []term{{termObject, s.namespace, s.name}}
	case s.name != "":
		return []term{{termName, "", s.name}}
	}
	for _, path := range s.fields.Paths() {
		// A selector for the empty value also selects objects without the field. These
		// objects have no term for it, so the selector cannot be indexed.
		if v, ok := s.fields.Equality(path); ok && v != "" && path != listwatch.FieldName &&
			path != listwatch.FieldNamespace {
			return []term{{termField, path, v}}
		}
	}
	if key, values, ok := s.labels.Equality(); ok && len(values) <= maxTerms {
		terms := make([]term, len(values))
		for i, v := range values {
			terms[i] = term{termLabel, key, v}
		}
		return terms
	}
	if s.namespace != "" {
		return []term{{termNamespace, "", s.namespace}}
	}
	return []term{{kind: termAny}}
}

// forEachTerm calls f with every term that o has, except termAny.
func forEachTerm(o *listwatch.Object, f func(term)) {
	f(term{termObject, o.Key.Namespace, o.Key.Name})
	f(term{termName, "", o.Key.Name})
	f(term{termNamespace, "", o.Key.Namespace})
	for k, v := range o.Labels {
		f(term{termLabel, k, v})
	}
	for k, v := range o.Fields {
		f(term{termField, k, v})
	}
}
