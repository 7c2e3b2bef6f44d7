package rawjson

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// A Report is the result of [Inspect].
type Report struct {
	// Unique is the document without duplicate members. If an object has several members with the
	// same name, the last one is kept, as [Find] does. A document without duplicates is unchanged.
	Unique []byte
	// Dropped contains the path of each dropped member, such as spec.ports[0].name.
	Dropped []string
	// Depth is the maximum nesting depth of the objects and arrays.
	Depth int
	// OutOfRange is the first number that exceeds the range of float64, or nil if there is none.
	OutOfRange []byte
}

// Inspect looks for everything in doc that some readers cannot read or would read differently. It
// reads doc once.
func Inspect(doc []byte) Report {
	if len(doc) == 0 {
		return Report{Unique: doc}
	}
	s := scan{doc: doc, seen: make([]seenMember, 0, manyMembers), path: make([]pathStep, 0, 8)}
	s.value(0)
	s.Unique = doc
	if s.drop != nil {
		s.Unique = s.withoutDropped()
	}
	return s.Report
}

// withoutDropped returns the document without the members in drop.
func (s *scan) withoutDropped() []byte {
	// A dropped member may contain other dropped members, so the outer one must come first.
	slices.SortFunc(s.drop, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	unique := make([]byte, 0, len(s.doc))
	from := 0
	for _, d := range s.drop {
		if d.Start < from {
			continue
		}
		unique = append(unique, s.doc[from:d.Start]...)
		from = d.End
	}
	return append(unique, s.doc[from:]...)
}

// manyMembers is the number of members at which an object gets a map of its names. In
// smaller objects, names are compared one by one.
const manyMembers = 16

// A scan is one call of Inspect.
type scan struct {
	Report
	doc []byte
	// seen holds the members read so far of all open objects, with the members of the
	// innermost object last.
	seen []seenMember
	path []pathStep // of the open objects and arrays
	drop []Span
}

type seenMember struct {
	name []byte // the decoded name
	Span        // the member and the comma after it
}

// A pathStep is a member name, or an array index if name is nil.
type pathStep struct {
	name  []byte
	index int
}

// value scans the value that starts at doc[i], and returns the index after it.
func (s *scan) value(i int) (end int) {
	switch c := s.doc[i]; {
	case c == '"':
		return StringEnd(s.doc, i)
	case c == '{':
		return s.object(i)
	case c == '[':
		return s.array(i)
	}
	end = valueEnd(s.doc, i)
	if s.OutOfRange == nil && isNumber(s.doc[i]) && isOutOfRange(s.doc[i:end]) {
		s.OutOfRange = s.doc[i:end:end]
	}
	return end
}

func isOutOfRange(number []byte) bool {
	if len(number) < 300 && !bytes.ContainsAny(number, "eE") {
		return false // the largest float64 has 309 digits
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err != nil
}

// enter adds a step for an object or array to the path.
func (s *scan) enter() {
	s.path = append(s.path, pathStep{})
	s.Depth = max(s.Depth, len(s.path))
}

func (s *scan) object(i int) (end int) {
	base, depth := len(s.seen), len(s.path)
	s.enter()
	var index map[string]int // maps names to indices of seen; nil until there are many members
	for i++; s.doc[i] != '}'; {
		start, after := i, StringEnd(s.doc, i)
		name := decoded(s.doc[i:after])
		s.path[depth].name = name
		at := s.find(base, name, index)
		i = s.value(after + 1)
		if s.doc[i] == ',' {
			i++
		}
		member := seenMember{name, Span{start, i}}
		if at >= 0 {
			s.drop = append(s.drop, s.seen[at].Span)
			s.Dropped = append(s.Dropped, s.pathText(depth+1))
			s.seen[at] = member
			continue
		}
		s.seen = append(s.seen, member)
		index = s.updateIndex(base, index)
	}
	s.seen, s.path = s.seen[:base], s.path[:depth]
	return i + 1
}

// find returns the index in s.seen of a name of the current object, or -1. The members of the
// current object start at s.seen[base].
func (s *scan) find(base int, name []byte, index map[string]int) int {
	if index != nil {
		if at, ok := index[string(name)]; ok {
			return at
		}
		return -1
	}
	for at := base; at < len(s.seen); at++ {
		if bytes.Equal(s.seen[at].name, name) {
			return at
		}
	}
	return -1
}

// updateIndex adds the last element of seen to index. It creates the index when there are
// many members.
func (s *scan) updateIndex(base int, index map[string]int) map[string]int {
	last := len(s.seen) - 1
	switch n := len(s.seen) - base; {
	case n < manyMembers:
		return nil
	case n == manyMembers:
		index = make(map[string]int, 4*manyMembers)
		for at := base; at < last; at++ {
			index[string(s.seen[at].name)] = at
		}
	}
	index[string(s.seen[last].name)] = last
	return index
}

func (s *scan) array(i int) (end int) {
	depth := len(s.path)
	s.enter()
	for i++; s.doc[i] != ']'; s.path[depth].index++ {
		if i = s.value(i); s.doc[i] == ',' {
			i++
		}
	}
	s.path = s.path[:depth]
	return i + 1
}

// pathText returns the text of path[:steps].
func (s *scan) pathText(steps int) string {
	var at []byte
	for _, step := range s.path[:steps] {
		switch {
		case step.name == nil:
			at = append(strconv.AppendInt(append(at, '['), int64(step.index), 10), ']')
			continue
		case len(at) > 0:
			at = append(at, '.')
		}
		at = append(at, step.name...)
	}
	return string(at)
}

// decoded returns the value of a JSON string. It is never nil.
func decoded(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := String(raw) // raw is a valid string
	return append([]byte{}, text...)
}
