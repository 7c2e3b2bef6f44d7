package rawjson

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// maxEqualDepth limits the depth to which Equal reorders members, because each level requires a
// pass over everything below it.
const maxEqualDepth = 32

// Equal reports whether a and b, two values of compact JSON, are the same value. The order of the
// members of objects, the escapes of strings and the notation of fractions do not matter: "&"
// equals "\u0026", and 1.5 equals 15e-1. As in Kubernetes, the integer 1 and the fraction 1.0
// differ. Numbers are compared exactly, not as float64. Objects and arrays deeper than 32 levels
// are equal only if their bytes are equal. Objects with two members of the same name are equal only
// if all their members have the same order.
func Equal(a, b []byte) bool { return equal(a, b, maxEqualDepth) }

func equal(a, b []byte, depth int) bool {
	switch {
	case bytes.Equal(a, b):
		return true
	case len(a) == 0 || len(b) == 0:
		return false
	case isNumber(a[0]) && isNumber(b[0]):
		return equalNumbers(a, b)
	case a[0] != b[0] || a[0] != '"' && depth == 0:
		return false
	case a[0] == '"':
		return equalStrings(a, b)
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

// equalStrings compares two strings whose bytes differ.
func equalStrings(a, b []byte) bool {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return false
	}
	textA, errA := String(a)
	textB, errB := String(b)
	return errA == nil && errB == nil && textA == textB
}

func isNumber(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

func equalNumbers(a, b []byte) bool {
	const fraction = ".eE"
	if bytes.ContainsAny(a, fraction) != bytes.ContainsAny(b, fraction) {
		return false
	}
	x, okX := parseDecimal(a)
	y, okY := parseDecimal(b)
	return okX && okY && x.negative == y.negative && x.exponent == y.exponent && bytes.Equal(x.digits, y.digits)
}

// A decimal is a normalized number: its digits neither start nor end with zeros, and zero has no
// digits. So equal numbers are equal decimals.
type decimal struct {
	negative bool
	digits   []byte
	exponent int // the power of ten of the last digit
}

// parseDecimal parses a JSON number. ok is false if the exponent is too large.
func parseDecimal(number []byte) (d decimal, ok bool) {
	d.digits, d.negative = bytes.CutPrefix(number, []byte("-"))
	if i := bytes.IndexAny(d.digits, "eE"); i >= 0 {
		const limit = 1 << 30
		exponent, err := strconv.Atoi(string(d.digits[i+1:]))
		if err != nil || exponent > limit || exponent < -limit {
			return d, false
		}
		d.digits, d.exponent = d.digits[:i], exponent
	}
	if whole, fraction, found := bytes.Cut(d.digits, []byte(".")); found {
		d.digits = slices.Concat(whole, fraction)
		d.exponent -= len(fraction)
	}
	d.digits = bytes.TrimLeft(d.digits, "0")
	digits := bytes.TrimRight(d.digits, "0")
	d.exponent += len(d.digits) - len(digits)
	if d.digits = digits; len(digits) == 0 {
		return decimal{}, true
	}
	return d, true
}
