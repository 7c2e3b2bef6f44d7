package history

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A selection is the part of the log that a query selects.
type selection struct {
	listwatch.Selection
	// mask is the projection of a feed. The differences of a record are compared with it. It is
	// nil if the feed has no projection.
	mask *rawjson.Mask
}

func newSelection(s listwatch.Selection) selection {
	// A field selector for the namespace or the name narrows the scope of the query. Matches
	// applies the field selector as well, so that a contradiction selects no object.
	if v, ok := s.Fields.Equality(listwatch.FieldNamespace); ok && s.Namespace == "" {
		s.Namespace = v
	}
	if v, ok := s.Fields.Equality(listwatch.FieldName); ok && s.Name == "" {
		s.Name = v
	}
	return selection{Selection: s}
}

// isSelective reports whether s selects by criteria other than the namespace.
func (s *selection) isSelective() bool {
	return s.Name != "" || !s.Labels.Empty() || !s.Fields.Empty()
}

// effect returns the type of the event that r causes in s, or zero; see
// [listwatch.Selection.Effect].
func (s *selection) effect(r *record) listwatch.EventType {
	if s.mask == nil || r.differences == nil || !s.Matches(r.Old) || !s.Matches(r.New) {
		return s.Effect(r.Old, r.New)
	}
	if s.mask.HidesDifferences(r.differences, r.Old.Data, r.New.Data) {
		return 0
	}
	return listwatch.Modified
}

// scan calls f with the objects of t in the namespace of s, in key order, until f returns false. It
// skips the keys that are not greater than after. If s has a namespace and a name, it only visits
// the object with that name. It does not apply selectors. Its cost depends on the size of the
// namespace, not of t.
func (s *selection) scan(t tree, after listwatch.Key, f func(o *listwatch.Object) bool) {
	first := listwatch.Key{Namespace: s.Namespace}
	if s.Namespace != "" {
		first.Name = s.Name
	}
	if first.Compare(after) < 0 {
		first = after
	}
	isFirst := true // no later object can have the key after, so do not compare it
	t.Ascend(&listwatch.Object{Key: first}, func(o *listwatch.Object) bool {
		if s.Namespace != "" && (o.Key.Namespace != s.Namespace || s.Name != "" && o.Key.Name != s.Name) {
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
	case s.Namespace != "" && s.Name != "":
		return []term{{termObject, s.Namespace, s.Name}}
	case s.Name != "":
		return []term{{termName, "", s.Name}}
	}
	for _, path := range s.Fields.Paths() {
		// A selector for the empty value also selects objects without the field. These
		// objects have no term for it, so the selector cannot be indexed.
		if v, ok := s.Fields.Equality(path); ok && v != "" && path != listwatch.FieldName &&
			path != listwatch.FieldNamespace {
			return []term{{termField, path, v}}
		}
	}
	if key, values, ok := s.Labels.Equality(); ok && len(values) <= maxTerms {
		terms := make([]term, len(values))
		for i, v := range values {
			terms[i] = term{termLabel, key, v}
		}
		return terms
	}
	if s.Namespace != "" {
		return []term{{termNamespace, "", s.Namespace}}
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
