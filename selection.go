package listwatch

import "strconv"

// A Selection is the part of a collection that a list or a watch shows: some of the objects, and
// some of their members. The zero Selection is the whole collection.
type Selection struct {
	// Namespace selects the objects of one namespace. If empty, all namespaces are selected.
	Namespace string
	// Name selects the objects with one name. If empty, all names are selected.
	Name string
	// Labels and Fields select objects by labels and fields. The zero values select everything. If
	// a value comes from a user, build the selectors with [LabelEquals] and [FieldEquals], which do
	// not parse the value.
	Labels LabelSelector
	Fields FieldSelector
	// Projection reduces the objects to some of their members. A watch then sends no event for a
	// change that the projection hides. The zero value shows whole objects.
	Projection Projection
}

// Matches reports whether s selects o, which may be nil.
func (s *Selection) Matches(o *Object) bool {
	return o != nil &&
		(s.Namespace == "" || o.Key.Namespace == s.Namespace) &&
		(s.Name == "" || o.Key.Name == s.Name) &&
		s.Labels.Matches(o.Labels) && s.Fields.Matches(o)
}

// Effect returns the type of the event that a watch of s receives when a write replaces the object
// before with after. Before a create and after a delete, the object is nil. The type depends on
// whether s selected the object, and not on whether the object existed: an object that begins to
// match is Added, and an object that no longer matches is Deleted. Zero means that there is no
// event, because s did not and does not select the object, or because its projection hides the
// change.
func (s *Selection) Effect(before, after *Object) EventType {
	switch was, is := s.Matches(before), s.Matches(after); {
	case was && is && !s.Projection.Hides(before, after):
		return Modified
	case is && !was:
		return Added
	case was && !is:
		return Deleted
	}
	return 0
}

// And returns the selection of the objects that both s and t select. The result has the projection
// of t or, if that is zero, the projection of s. So the result selects no object outside of s, but
// can show other members.
func (s Selection) And(t Selection) Selection {
	if s.Namespace == "" {
		s.Namespace = t.Namespace
	} else if t.Namespace != "" && t.Namespace != s.Namespace {
		s.Fields = s.Fields.And(FieldEquals(FieldNamespace, t.Namespace)) // no object
	}
	if s.Name == "" {
		s.Name = t.Name
	} else if t.Name != "" && t.Name != s.Name {
		s.Fields = s.Fields.And(FieldEquals(FieldName, t.Name)) // no object
	}
	s.Labels, s.Fields = s.Labels.And(t.Labels), s.Fields.And(t.Fields)
	if !t.Projection.Empty() {
		s.Projection = t.Projection
	}
	return s
}

// Key returns s as a text. Selections have the same Key if they have the same namespace and name,
// and if their selectors and projections have the same canonical forms. The Key of the zero
// Selection is empty.
func (s Selection) Key() string {
	var buf [128]byte
	key := buf[:0]
	for _, part := range [...]struct{ name, text string }{
		{"namespace", s.Namespace},
		{"name", s.Name},
		{"labels", s.Labels.String()},
		{"fields", s.Fields.String()},
		{"shows", s.Projection.String()},
	} {
		if part.text == "" {
			continue
		}
		if len(key) > 0 {
			key = append(key, ' ')
		}
		key = append(append(key, part.name...), '=')
		key = strconv.AppendQuote(key, part.text)
	}
	return string(key)
}
