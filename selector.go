package listwatch

import (
	"slices"
	"strconv"
	"strings"
)

// A LabelSelector selects objects by their labels, in Kubernetes' syntax: "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b,c)",
// "a", "!a", "a>1" and "a<1", joined by commas, all of which must hold. The zero LabelSelector selects everything. A selector
// is immutable.
type LabelSelector struct {
	terms []labelTerm
	text  string
}

type labelOp uint8

const (
	opIn    labelOp = iota // also = and ==
	opNotIn                // also !=; holds where the label is absent
	opExists
	opAbsent
	opGreater
	opLess
)

type labelTerm struct {
	key    string
	op     labelOp
	values []string // sorted, without repeats; none for opExists and opAbsent
	number int64    // of opGreater and opLess
}

// Matches reports whether labels are selected.
func (s LabelSelector) Matches(labels map[string]string) bool {
	for i := range s.terms {
		if !s.terms[i].matches(labels) {
			return false
		}
	}
	return true
}

func (t *labelTerm) matches(labels map[string]string) bool {
	value, ok := labels[t.key]
	switch t.op {
	case opIn:
		return ok && slices.Contains(t.values, value)
	case opNotIn:
		return !ok || !slices.Contains(t.values, value)
	case opExists:
		return ok
	case opAbsent:
		return !ok
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if !ok || err != nil {
		return false
	}
	return t.op == opGreater && n > t.number || t.op == opLess && n < t.number
}

// String returns s in canonical form: selectors that were written with other spaces, another order of terms or values or
// another spelling of equality have the same.
func (s LabelSelector) String() string { return s.text }

// Empty reports whether s selects everything.
func (s LabelSelector) Empty() bool { return len(s.terms) == 0 }

// Equality returns a label that every selected object has with one of the values. An index can use it. ok is false where s
// demands no such label.
func (s LabelSelector) Equality() (key string, values []string, ok bool) {
	best := -1
	for i := range s.terms {
		if s.terms[i].op == opIn && (best < 0 || len(s.terms[i].values) < len(s.terms[best].values)) {
			best = i
		}
	}
	if best < 0 {
		return "", nil, false
	}
	return s.terms[best].key, s.terms[best].values, true
}

func newLabelSelector(terms []labelTerm) LabelSelector {
	slices.SortFunc(terms, func(a, b labelTerm) int { return strings.Compare(a.String(), b.String()) })
	terms = slices.CompactFunc(terms, func(a, b labelTerm) bool { return a.String() == b.String() })
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.String()
	}
	return LabelSelector{terms, strings.Join(parts, ",")}
}

func (t labelTerm) String() string {
	switch t.op {
	case opIn:
		if len(t.values) == 1 {
			return t.key + "=" + t.values[0]
		}
		return t.key + " in (" + strings.Join(t.values, ",") + ")"
	case opNotIn:
		if len(t.values) == 1 {
			return t.key + "!=" + t.values[0]
		}
		return t.key + " notin (" + strings.Join(t.values, ",") + ")"
	case opAbsent:
		return "!" + t.key
	case opGreater:
		return t.key + ">" + strconv.FormatInt(t.number, 10)
	case opLess:
		return t.key + "<" + strconv.FormatInt(t.number, 10)
	}
	return t.key
}

// A FieldSelector selects objects by their fields, in Kubernetes' syntax: "a=b", "a==b" and "a!=b" joined by commas, all of which
// must hold; a backslash takes the meaning from a comma, an equals sign or a backslash in a value. The zero FieldSelector selects
// everything. A selector is immutable.
type FieldSelector struct {
	terms []fieldTerm
	text  string
}

type fieldTerm struct {
	path, value string
	not         bool
}

// The fields that every collection has.
const (
	FieldName      = "metadata.name"
	FieldNamespace = "metadata.namespace"
)

// Field returns the value of a field of o as a selector sees it: metadata.name, metadata.namespace, or one of o.Fields; "" where
// there is none.
func (o *Object) Field(path string) string {
	switch path {
	case FieldName:
		return o.Key.Name
	case FieldNamespace:
		return o.Key.Namespace
	}
	return o.Fields[path]
}

// Matches reports whether o is selected.
func (s FieldSelector) Matches(o *Object) bool {
	for i := range s.terms {
		t := &s.terms[i]
		if (o.Field(t.path) == t.value) == t.not {
			return false
		}
	}
	return true
}

// String returns s in canonical form, as [LabelSelector.String] does.
func (s FieldSelector) String() string { return s.text }

// Empty reports whether s selects everything.
func (s FieldSelector) Empty() bool { return len(s.terms) == 0 }

// Equality returns the value that the field must have, for an index; ok is false where s demands none.
func (s FieldSelector) Equality(path string) (value string, ok bool) {
	for _, t := range s.terms {
		if t.path == path && !t.not {
			return t.value, true
		}
	}
	return "", false
}

// Paths returns the fields that s names, in canonical order.
func (s FieldSelector) Paths() []string {
	var paths []string
	for _, t := range s.terms {
		if !slices.Contains(paths, t.path) {
			paths = append(paths, t.path)
		}
	}
	return paths
}

// Check returns an error of code [Invalid] where s names a field that is neither metadata.name nor metadata.namespace nor in fields.
func (s FieldSelector) Check(fields []string) error {
	for _, p := range s.Paths() {
		if p != FieldName && p != FieldNamespace && !slices.Contains(fields, p) {
			known := append([]string{FieldName, FieldNamespace}, fields...)
			return &Error{Code: Invalid, Message: "field selector: field label not supported: " + strconv.Quote(p) +
				"; supported: " + strings.Join(known, ", ")}
		}
	}
	return nil
}

// And returns a selector that also demands the value of the field.
func (s FieldSelector) And(path, value string) FieldSelector {
	return newFieldSelector(append(slices.Clone(s.terms), fieldTerm{path: path, value: value}))
}

func newFieldSelector(terms []fieldTerm) FieldSelector {
	slices.SortFunc(terms, func(a, b fieldTerm) int { return strings.Compare(a.String(), b.String()) })
	terms = slices.Compact(terms)
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.String()
	}
	return FieldSelector{terms, strings.Join(parts, ",")}
}

var fieldEscaper = strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`)

func (t fieldTerm) String() string {
	op := "="
	if t.not {
		op = "!="
	}
	return t.path + op + fieldEscaper.Replace(t.value)
}
