package rawjson

import (
	"bytes"
	"cmp"
	"slices"
)

// maxEqualDepth limits the depth to which Equal reorders members, because each level requires a
// pass over everything below it.
const maxEqualDepth = 32

// Equal reports whether a and b, two values of compact JSON, differ at most in the order of the
// members of objects. It compares numbers and strings as they are written. Values deeper than 32
// levels, and objects with two members of the same name, are equal only if their bytes are.
func Equal(a, b []byte) bool { return equal(a, b, maxEqualDepth) }

func equal(a, b []byte, depth int) bool {
	switch {
	case bytes.Equal(a, b):
		return true
	case len(a) < 2 || len(b) < 2 || a[0] != b[0] || depth == 0:
		return false
	case a[0] == '{':
		membersA, errA := Split(a)
		membersB, errB := Split(b)
		return errA == nil && errB == nil && equalMembers(membersA, membersB, depth)
	case a[0] == '[':
		return slices.EqualFunc(elements(a), elements(b), func(a, b []byte) bool { return equal(a, b, depth-1) })
	}
	return false
}

// EqualMembers reports whether the objects with the members a and b are equal; see [Equal]. It may
// sort a and b by name.
func EqualMembers(a, b []Member) bool { return equalMembers(a, b, maxEqualDepth) }

func equalMembers(a, b []Member, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	sameName := func(a, b Member) bool { return a.Name == b.Name }
	if !slices.EqualFunc(a, b, sameName) {
		byName := func(a, b Member) int { return cmp.Compare(a.Name, b.Name) }
		slices.SortFunc(a, byName)
		slices.SortFunc(b, byName)
	}
	return slices.EqualFunc(a, b, func(a, b Member) bool { return a.Name == b.Name && equal(a.Value, b.Value, depth-1) })
}

// elements returns the elements of an array.
func elements(doc []byte) (all [][]byte) {
	_ = Elements(doc, func(value Span) error {
		all = append(all, value.Of(doc))
		return nil
	})
	return all
}
