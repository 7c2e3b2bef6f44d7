package listwatch

import (
	"slices"
	"strconv"
	"strings"
)

// A LabelSelector selects objects by their labels. In Kubernetes' syntax, its terms have the form
// "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", "a>1" or "a<1" and are joined by
// commas. A selected object fulfills every term. The zero LabelSelector selects everything. A
// selector is immutable.
type LabelSelector struct {
	terms []labelTerm
	text  string
}

type labelOp uint8

const (
	opIn    labelOp = iota // in, = and ==
	opNotIn                // notin and !=; an absent label matches
	opExists
	opAbsent
	opGreater
	opLess
)

type labelTerm struct {
	key    string
	op     labelOp
	values []string // used by opIn and opNotIn; sorted, without duplicates
	number int64    // used by opGreater and opLess
}

// Matches reports whether s selects an object with these labels.
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

// String returns s in canonical form. Selectors that differ only in spaces, in the order of terms
// or values, or in the operator for equality have the same form.
func (s LabelSelector) String() string { return s.text }

// Empty reports whether s selects everything.
func (s LabelSelector) Empty() bool { return len(s.terms) == 0 }

// Equality returns the key of a label that every selected object has, and the values that this
// label may have, for use by an index. ok is false if s requires no such label.
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

// LabelEquals returns a selector of the objects that have a label with the given key and value.
// The value is not parsed as a part of a selector, so it may come from user input, such as the
// name of a tenant. If no label can have this key or value, the error has code [Invalid].
func LabelEquals(key, value string) (LabelSelector, error) {
	err := checkLabelKey(key)
	if err == nil {
		err = checkLabelValue(value)
	}
	if err != nil {
		return LabelSelector{}, &Error{Code: Invalid, Message: "invalid label selector: " + err.Error()}
	}
	return newLabelSelector([]labelTerm{{key: key, op: opIn, values: []string{value}}}), nil
}

// And returns a selector of the objects that both s and o select.
func (s LabelSelector) And(o LabelSelector) LabelSelector {
	if o.Empty() {
		return s
	}
	return newLabelSelector(slices.Concat(s.terms, o.terms))
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
