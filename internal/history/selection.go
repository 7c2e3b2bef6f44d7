package history

import "github.com/listwatch/listwatch"

// A selection is what a query selects: its scope and its selectors.
type selection struct {
	namespace, name string
	labels          listwatch.LabelSelector
	fields          listwatch.FieldSelector
}

// selectionKey is equal for selections that select the same, as far as their text tells.
type selectionKey struct{ namespace, name, labels, fields string }

func newSelection(q listwatch.Query) selection {
	s := selection{q.Namespace, q.Name, q.Labels, q.Fields}
	// Fields that are the scope by another name narrow it; matches still looks at the selector, so that a contradiction
	// selects nothing.
	if v, ok := s.fields.Equality(listwatch.FieldNamespace); ok && s.namespace == "" {
		s.namespace = v
	}
	if v, ok := s.fields.Equality(listwatch.FieldName); ok && s.name == "" {
		s.name = v
	}
	return s
}

func (s *selection) key() selectionKey {
	return selectionKey{s.namespace, s.name, s.labels.String(), s.fields.String()}
}

func (s *selection) matches(o *listwatch.Object) bool {
	return o != nil &&
		(s.namespace == "" || o.Key.Namespace == s.namespace) &&
		(s.name == "" || o.Key.Name == s.name) &&
		s.labels.Matches(o.Labels) && s.fields.Matches(o)
}

// selective reports whether s selects by more than namespace.
func (s *selection) selective() bool {
	return s.name != "" || !s.labels.Empty() || !s.fields.Empty()
}

// transition says what r means to s. What counts is whether the object was selected before, not whether it was there.
// select/leaves-selector: an object that stops matching is DELETED, one that begins to is ADDED.
func (s *selection) transition(r *record) transition {
	before, after := s.matches(r.old), s.matches(r.new)
	switch {
	case before && after:
		return change
	case after:
		return enter
	case before:
		return exit
	}
	return none
}

// ascend calls f with the objects of t that s selects, in key order, from the first key that is not before from, until f returns false.
// It costs the size of the namespace, not of t, where s has one.
func (s *selection) ascend(t *tree, from listwatch.Key, f func(o *listwatch.Object) bool) {
	s.scan(t, from, func(o *listwatch.Object) bool { return !s.matches(o) || f(o) })
}

// scan is ascend for all objects of the scope, whether s selects them or not.
func (s *selection) scan(t *tree, from listwatch.Key, f func(o *listwatch.Object) bool) {
	start := listwatch.Key{Namespace: s.namespace}
	if s.namespace != "" {
		start.Name = s.name
	}
	if start.Compare(from) < 0 {
		start = from
	}
	t.Ascend(&listwatch.Object{Key: start}, func(o *listwatch.Object) bool {
		if s.namespace != "" && (o.Key.Namespace != s.namespace || s.name != "" && o.Key.Name != s.name) {
			return false
		}
		return f(o)
	})
}

// A term is something that every object of a selection has, by which the index finds the feeds that a write may concern.
type term struct {
	kind       termKind
	key, value string
}

type termKind uint8

const (
	termAll       termKind = iota // no term: every write may concern the feed
	termObject                    // key is a namespace, value a name
	termName                      // value is a name, in any namespace
	termNamespace                 // value is a namespace
	termLabel                     // key is a label
	termField                     // key is a path
)

// maxTerms is how many values a label selector may list and still be indexed by them.
const maxTerms = 16

// terms returns where the index files s: an object that s selects has at least one of them.
func (s *selection) terms() []term {
	switch {
	case s.namespace != "" && s.name != "":
		return []term{{termObject, s.namespace, s.name}}
	case s.name != "":
		return []term{{termName, "", s.name}}
	}
	for _, path := range s.fields.Paths() {
		// An absent field reads as the empty value, which no object lists among its fields.
		if v, ok := s.fields.Equality(path); ok && v != "" && path != listwatch.FieldName && path != listwatch.FieldNamespace {
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
	return []term{{kind: termAll}}
}

// termsOf calls f with every term under which a feed that o concerns can be filed.
func termsOf(o *listwatch.Object, f func(term)) {
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
