package listwatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A FieldSelector selects objects by their fields. In Kubernetes' syntax, its terms have the form
// "a=b", "a==b" or "a!=b" and are joined by commas. A selected object fulfills every term. A
// backslash escapes a comma, an equals sign or a backslash in a value. The zero FieldSelector
// selects everything. A selector is immutable.
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

// Field returns the value that field selectors see at path, which is metadata.name,
// metadata.namespace, or a key of o.Fields. The value is empty if o has no such field.
func (o *Object) Field(path string) string {
	switch path {
	case FieldName:
		return o.Key.Name
	case FieldNamespace:
		return o.Key.Namespace
	}
	return o.Fields[path]
}

// Matches reports whether s selects o.
func (s FieldSelector) Matches(o *Object) bool {
	for i := range s.terms {
		t := &s.terms[i]
		if (o.Field(t.path) == t.value) == t.not {
			return false
		}
	}
	return true
}

// String returns s in canonical form; see [LabelSelector.String].
func (s FieldSelector) String() string { return s.text }

// Empty reports whether s selects everything.
func (s FieldSelector) Empty() bool { return len(s.terms) == 0 }

// Equality returns the value that s requires for the field at path, for use by an index. ok is
// false if s has no term for equality with this path.
func (s FieldSelector) Equality(path string) (value string, ok bool) {
	for _, t := range s.terms {
		if t.path == path && !t.not {
			return t.value, true
		}
	}
	return "", false
}

// Paths returns the paths of the fields that s uses, in the order of the canonical form.
func (s FieldSelector) Paths() []string {
	var paths []string
	for _, t := range s.terms {
		if !slices.Contains(paths, t.path) {
			paths = append(paths, t.path)
		}
	}
	return paths
}

// Check returns an error of code [Invalid] if s uses a field other than metadata.name,
// metadata.namespace and the given fields.
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

// FieldEquals returns a selector of the objects whose field at path has the given value. The value
// may contain any characters.
func FieldEquals(path, value string) FieldSelector {
	return newFieldSelector([]fieldTerm{{path: path, value: value}})
}

// And returns a selector of the objects that both s and o select.
func (s FieldSelector) And(o FieldSelector) FieldSelector {
	if o.Empty() {
		return s
	}
	return newFieldSelector(slices.Concat(s.terms, o.terms))
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

// ParseFieldSelector parses a field selector. A syntax error is an error of code [Invalid].
// ParseFieldSelector does not know which fields exist; see [FieldSelector.Check].
func ParseFieldSelector(s string) (FieldSelector, error) {
	var terms []fieldTerm
	for _, part := range splitUnescaped(s) {
		if part == "" {
			continue
		}
		t, err := parseFieldTerm(part)
		if err != nil {
			return FieldSelector{}, &Error{
				Code: Invalid, Message: fmt.Sprintf("unable to parse field selector %q: %v", s, err),
			}
		}
		terms = append(terms, t)
	}
	if terms == nil {
		return FieldSelector{}, nil
	}
	return newFieldSelector(terms), nil
}

// splitUnescaped splits s at each comma that is not escaped by a backslash.
func splitUnescaped(s string) []string {
	var parts []string
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case ',':
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

func parseFieldTerm(part string) (fieldTerm, error) {
	for i := range len(part) {
		for _, op := range []string{"!=", "==", "="} {
			if !strings.HasPrefix(part[i:], op) {
				continue
			}
			t := fieldTerm{path: strings.TrimSpace(part[:i]), not: op == "!="}
			if t.path == "" || strings.ContainsAny(t.path, "! \\") {
				return t, fmt.Errorf("%q: must have the path of a field before %q, got %q", part, op, t.path)
			}
			var err error
			t.value, err = unescapeField(part[i+len(op):])
			return t, err
		}
	}
	return fieldTerm{}, fmt.Errorf("%q: must have the form field=value, field==value or field!=value", part)
}

func unescapeField(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i == len(s) || strings.IndexByte(`\,=`, s[i]) < 0 {
				return "", fmt.Errorf(
					`value %q: a backslash must be followed by a backslash, a comma or an equals sign`, s)
			}
			b.WriteByte(s[i])
		case '=':
			return "", fmt.Errorf("value %q: an equals sign must have a backslash before it", s)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
