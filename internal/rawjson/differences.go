package rawjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// Differences are the paths at which two documents differ. They are computed once and then compared
// with many masks. Like the path of a [Mask], such a path does not contain the indexes of arrays.
// Differences refer to the documents, and are immutable.
type Differences struct {
	// paths are the paths of values that differ, with the names of members as written, in quotes.
	paths [][][]byte
	// unknown is true if there are too many differences.
	unknown bool
}

const (
	maxDifferences = 64
	// maxDifferenceDepth limits the levels of objects and arrays in which a differ looks for
	// differences. A deeper value counts as a whole.
	maxDifferenceDepth = 32
)

// A differ walks through two documents side by side. It compares objects member by member while
// their members have the same order, and arrays of the same length element by element. Everything
// else counts as a whole.
type differ struct {
	a, b  []byte
	names [][]byte // the path of the current value
	depth int
	found Differences
	tries int
	// next is an index of a: up to next, the remaining text of a equals the remaining text of b. If
	// next is len(a), no difference remains, and the walk ends.
	next int
}

// Compare returns the differences of a and b, two objects.
func Compare(a, b []byte) *Differences {
	d := &differ{a: a, b: b}
	if d.align(0, 0); !d.isDone() {
		d.value(0, 0)
	}
	return &d.found
}

func (d *differ) isDone() bool { return d.found.unknown || d.next == len(d.a) }

// align sets next, from the indexes i of a and j of b on.
func (d *differ) align(i, j int) {
	d.next = i + commonPrefix(d.a[i:], d.b[j:])
}

// commonPrefix returns the number of bytes at the start of a and b that are equal.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for ; i < n && a[i] == b[i]; i++ {
	}
	return i
}

// value compares the values that start at a[i] and b[j], and returns the indexes after them. When
// the walk is done, these are not valid.
func (d *differ) value(i, j int) (afterA, afterB int) {
	if end := d.equalEnd(i); end > 0 {
		return end, j + end - i
	}
	if d.a[i] == d.b[j] && d.depth < maxDifferenceDepth {
		d.depth++
		defer func() { d.depth-- }()
		switch d.a[i] {
		case '{':
			return d.object(i, j)
		case '[':
			return d.array(i, j)
		}
	}
	return d.whole(i, j)
}

// equalEnd returns the index after the value at a[i] if the value ends before next, or zero
// otherwise. The byte after the value must be equal, too, because it ends a number.
func (d *differ) equalEnd(i int) int {
	depth := 0
	for ; i < d.next; i++ {
		switch d.a[i] {
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case '"':
			i = StringEnd(d.a, i) - 1
		case ',', ':':
			continue
		default:
			i = valueEnd(d.a, i) - 1
		}
		if depth == 0 && i+1 < d.next {
			return i + 1
		}
	}
	return 0
}

func (d *differ) object(i, j int) (afterA, afterB int) {
	startA, startB := i, j
	for i, j = i+1, j+1; d.a[i] != '}' && d.b[j] != '}'; {
		if d.a[i] == ',' {
			i, j = i+1, j+1
		}
		endA, endB := StringEnd(d.a, i), j
		if endB += endA - i; endA >= d.next {
			endB = StringEnd(d.b, j)
		}
		key := d.a[i:endA]
		if !bytes.Equal(key, d.b[j:endB]) {
			break // a member was added, removed or renamed
		}
		d.names = append(d.names, key)
		i, j = d.value(endA+1, endB+1)
		if d.names = d.names[:len(d.names)-1]; d.isDone() {
			return i, j
		}
	}
	if d.a[i] != '}' || d.b[j] != '}' {
		return d.whole(startA, startB)
	}
	return i + 1, j + 1
}

func (d *differ) array(i, j int) (afterA, afterB int) {
	startA, startB := i, j
	for i, j = i+1, j+1; d.a[i] != ']' && d.b[j] != ']'; {
		if d.a[i] == ',' {
			i, j = i+1, j+1
		}
		if i, j = d.value(i, j); d.isDone() {
			return i, j
		}
	}
	if d.a[i] != ']' || d.b[j] != ']' {
		return d.whole(startA, startB) // the lengths differ
	}
	return i + 1, j + 1
}

// whole notes that the values at a[i] and b[j] differ, unless their texts are equal.
func (d *differ) whole(i, j int) (afterA, afterB int) {
	afterA, afterB = valueEnd(d.a, i), valueEnd(d.b, j)
	if !bytes.Equal(d.a[i:afterA], d.b[j:afterB]) {
		d.note()
	}
	d.align(afterA, afterB)
	return afterA, afterB
}

// note adds the current path. A path with many differences, such as that of a member of all
// elements of an array, is noted once. Each try has scanned a value, so their number is limited.
func (d *differ) note() {
	if d.tries++; d.tries > maxDifferences {
		d.found.unknown = true
		return
	}
	for _, path := range d.found.paths {
		if slices.EqualFunc(path, d.names, bytes.Equal) {
			return
		}
	}
	d.found.paths = append(d.found.paths, append([][]byte(nil), d.names...))
}

// HidesDifferences is like [Mask.Hides], with the differences of a and b. It compares a and b only
// if m shows just a part of a value that differs.
func (m *Mask) HidesDifferences(d *Differences, a, b []byte) bool {
	divided := d.unknown
	for _, path := range d.paths {
		p := m.compared
		for i := 0; i < len(path) && len(p.members) > 0; i++ {
			p = p.of(path[i])
		}
		if len(p.members) > 0 {
			divided = true
		} else if p.keep {
			return false
		}
	}
	return !divided || m.Hides(a, b)
}
