package rawjson

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// DropRepeated returns doc, compact JSON, without the members whose name comes again later in the same object: of those with one name the
// last counts, as in [Find]. repeated says where they were, as in spec.ports[0].name, each place once for each member dropped. A doc in
// which no name comes twice is returned as it is.
func DropDuplicates(doc []byte) (unique []byte, repeated []string) {
	if len(doc) == 0 {
		return doc, nil
	}
	s := scan{doc: doc}
	s.value(0)
	if s.drop == nil {
		return doc, nil
	}
	// A member that goes may have others in it that go.
	slices.SortFunc(s.drop, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	unique = make([]byte, 0, len(doc))
	from := 0
	for _, d := range s.drop {
		if d.Start < from {
			continue
		}
		unique = append(unique, doc[from:d.Start]...)
		from = d.End
	}
	return append(unique, doc[from:]...), s.repeated
}

// manyMembers is how many members of an object are compared one by one; for more there is a map.
const manyMembers = 16

// A scan looks for names that come twice.
type scan struct {
	doc []byte
	// seen are the members of the objects that the scan is in, those of the innermost last.
	seen     []seen
	path     []step
	drop     []Span
	repeated []string
}

type seen struct {
	name []byte // decoded
	Span        // the member and the comma behind it
}

// A step is a name, or without one an index.
type step struct {
	name  []byte
	index int
}

// value scans the value that begins at doc[i], and returns where it ends.
func (s *scan) value(i int) (end int) {
	switch s.doc[i] {
	case '{':
		return s.object(i)
	case '[':
		return s.array(i)
	}
	return skip(s.doc, i)
}

func (s *scan) object(i int) (end int) {
	base, depth := len(s.seen), len(s.path)
	s.path = append(s.path, step{})
	var many map[string]int // where in seen a name is
	for i++; s.doc[i] != '}'; {
		start, after := i, skipString(s.doc, i)
		name := decoded(s.doc[i:after])
		s.path[depth].name = name
		at := s.find(base, name, many)
		i = s.value(after + 1)
		if s.doc[i] == ',' {
			i++
		}
		here := seen{name, Span{start, i}}
		if at >= 0 {
			s.drop = append(s.drop, s.seen[at].Span)
			s.repeated = append(s.repeated, s.where(depth+1))
			s.seen[at] = here
			continue
		}
		s.seen = append(s.seen, here)
		many = s.remember(base, many)
	}
	s.seen, s.path = s.seen[:base], s.path[:depth]
	return i + 1
}

// find returns where in seen, from base on, a name is; -1: nowhere.
func (s *scan) find(base int, name []byte, many map[string]int) int {
	if many != nil {
		if at, ok := many[string(name)]; ok {
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

// remember adds what is last in seen to many, which begins to be one when there is much.
func (s *scan) remember(base int, many map[string]int) map[string]int {
	last := len(s.seen) - 1
	switch n := len(s.seen) - base; {
	case n < manyMembers:
		return nil
	case n == manyMembers:
		many = make(map[string]int, 4*manyMembers)
		for at := base; at < last; at++ {
			many[string(s.seen[at].name)] = at
		}
	}
	many[string(s.seen[last].name)] = last
	return many
}

func (s *scan) array(i int) (end int) {
	depth := len(s.path)
	s.path = append(s.path, step{})
	for i++; s.doc[i] != ']'; s.path[depth].index++ {
		if i = s.value(i); s.doc[i] == ',' {
			i++
		}
	}
	s.path = s.path[:depth]
	return i + 1
}

// where spells the first steps of the path.
func (s *scan) where(steps int) string {
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

// decoded returns the content of a JSON string; never nil.
func decoded(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := String(raw) // it is a string
	return append([]byte{}, text...)
}

// Depth returns how many objects and arrays of doc, JSON, are at most in one another.
func Depth(doc []byte) int {
	depth, most := 0, 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			i = skipString(doc, i) - 1
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}
