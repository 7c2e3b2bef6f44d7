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
// levels are equal only if their bytes are equal. Objects with two members of the same name are
// equal only if all their members have the same order.
func Equal(a, b []byte) bool { return equal(a, b, maxEqualDepth) }

func equal(a, b []byte, depth int) bool {
	switch {
	case bytes.Equal(a, b):
		return true
	case len(a) < 2 || len(b) < 2 || a[0] != b[0] || depth == 0:
		return false
	case a[0] == '{':
		return equalObjects(a, b, depth)
	case a[0] == '[':
		return slices.EqualFunc(elements(a), elements(b), func(a, b []byte) bool { return equal(a, b, depth-1) })
	}
	return false
}

// equalObjects does not allocate while the members have the same order, which is the usual case.
func equalObjects(a, b []byte, depth int) bool {
	n := 0 // members that are equal
	for i, j := 1, 1; a[i] != '}' || b[j] != '}'; n++ {
		if a[i] == '}' || b[j] == '}' {
			return false
		}
		keyA, valueA, nextA := nextMember(a, i)
		keyB, valueB, nextB := nextMember(b, j)
		if !bytes.Equal(keyA.Of(a), keyB.Of(b)) {
			membersA, errA := Split(a)
			membersB, errB := Split(b)
			// Comparing the first members again would double the time at each level.
			return errA == nil && errB == nil && equalMembers(membersA[n:], membersB[n:], depth)
		}
		if !equal(valueA.Of(a), valueB.Of(b), depth-1) {
			return false
		}
		i, j = nextA, nextB
	}
	return true
}

// EqualMembers reports whether the objects with the members a and b are equal; see [Equal].
func EqualMembers(a, b []Member) bool { return equalMembers(a, b, maxEqualDepth) }

func equalMembers(a, b []Member, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	if !slices.EqualFunc(a, b, func(a, b Member) bool { return a.Name == b.Name }) {
		byName := func(a, b Member) int { return cmp.Compare(a.Name, b.Name) }
		a, b = slices.SortedFunc(slices.Values(a), byName), slices.SortedFunc(slices.Values(b), byName)
	}
	return slices.EqualFunc(a, b, func(a, b Member) bool {
		return a.Name == b.Name && equal(a.Value, b.Value, depth-1)
	})
}

// elements returns the elements of an array.
func elements(doc []byte) (all [][]byte) {
	_ = Elements(doc, func(value Span) error {
		all = append(all, value.Of(doc))
		return nil
	})
	return all
}
