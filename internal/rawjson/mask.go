package rawjson

import (
	"bytes"
	"slices"
)

// A Mask selects members of objects, and always the members that identify an object. [ParseMask]
// describes its text. It is immutable.
type Mask struct {
	shown *part
	// compared is shown without metadata.resourceVersion, which each write changes. If the paths of
	// the mask only exclude, it is also without metadata.generation, which changes of the excluded
	// members raise.
	compared *part
	text     string
}

// A part is the part of a value that a [Mask] shows: everything or, if keep is false, nothing,
// except for the given members.
type part struct {
	keep    bool
	members []partMember
}

type partMember struct {
	name string
	part *part
}

var everything, nothing = &part{keep: true}, &part{}

// always holds the members that every object shows.
var always = [][]string{
	{"apiVersion"},
	{"kind"},
	{"metadata", "name"},
	{"metadata", "namespace"},
	{"metadata", "uid"},
	{"metadata", "resourceVersion"},
}

// String returns the canonical text of m. Masks that show the same members have the same text.
func (m *Mask) String() string { return m.text }

// Append appends the part of doc, an object, that m shows. It takes one pass and does not decode
// the values.
func (m *Mask) Append(dst, doc []byte) []byte {
	dst, _ = m.shown.append(dst, doc, 0)
	return dst
}

// Hides reports whether m shows the same part of a and b, two objects, apart from
// metadata.resourceVersion and, if the paths of m only exclude, metadata.generation. Members in
// another order count as a difference.
func (m *Mask) Hides(a, b []byte) bool {
	buf := make([]byte, 0, 1024)
	buf, _ = m.compared.append(buf, a, 0)
	end := len(buf)
	buf, _ = m.compared.append(buf, b, 0)
	return bytes.Equal(buf[:end], buf[end:])
}

// Covers reports whether m shows all of the value at path.
func (m *Mask) Covers(path ...string) bool { return m.shown.covers(path) }

// Contains reports whether m shows all members that o shows.
func (m *Mask) Contains(o *Mask) bool { return m.shown.contains(o.shown) }

func (p *part) contains(o *part) bool {
	if o.keep && !p.keep {
		return false
	}
	containsMember := func(m partMember) bool { return memberOf(p, m.name).contains(memberOf(o, m.name)) }
	for _, members := range [...][]partMember{p.members, o.members} {
		for _, m := range members {
			if !containsMember(m) {
				return false
			}
		}
	}
	return true
}

// memberOf returns the part of the named member that p shows.
func memberOf[T string | []byte](p *part, name T) *part {
	for i := range p.members {
		if p.members[i].name == string(name) {
			return p.members[i].part
		}
	}
	if p.keep {
		return everything
	}
	return nothing
}

// covers reports whether p shows all of the value at path.
func (p *part) covers(path []string) bool {
	for _, name := range path {
		p = memberOf(p, name)
	}
	return p.keep && len(p.members) == 0
}

// of returns the part that p shows of the member with the given name, which is in quotes as
// written.
func (p *part) of(key []byte) *part {
	if bytes.IndexByte(key, '\\') >= 0 {
		name, _ := String(key) // valid JSON
		return memberOf(p, name)
	}
	return memberOf(p, key[1:len(key)-1])
}

// append appends the part of the value at doc[i] that p shows, and returns the index after the
// value. The elements of an array keep their number: a scalar that is not shown becomes null.
func (p *part) append(dst, doc []byte, i int) (out []byte, end int) {
	if !p.dividesValue(doc[i]) {
		end = valueEnd(doc, i)
		if p.keep {
			return append(dst, doc[i:end]...), end
		}
		return append(dst, "null"...), end
	}
	if doc[i] == '{' {
		return p.appendObject(dst, doc, i)
	}
	dst = append(dst, '[')
	for i++; doc[i] != ']'; {
		if doc[i] == ',' {
			dst = append(dst, ',')
			i++
		}
		dst, i = p.append(dst, doc, i)
	}
	return append(dst, ']'), i + 1
}

// dividesValue reports whether p shows some members of a value that begins with the given byte, and
// hides others.
func (p *part) dividesValue(first byte) bool {
	return len(p.members) > 0 && (first == '{' || first == '[')
}

func (p *part) appendObject(dst, doc []byte, i int) (out []byte, end int) {
	dst = append(dst, '{')
	first := len(dst)
	for i++; doc[i] != '}'; {
		if doc[i] == ',' {
			i++
		}
		start := i
		value := StringEnd(doc, i) + 1
		m := p.of(doc[start : value-1])
		divided := m.dividesValue(doc[value])
		if !divided {
			i = valueEnd(doc, value)
		}
		if !divided && !m.keep {
			continue
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		if !divided {
			dst = append(dst, doc[start:i]...)
			continue
		}
		dst, i = m.append(append(dst, doc[start:value]...), doc, value)
	}
	return append(dst, '}'), i + 1
}

// with returns a copy of p in which the member at path has the given part.
func (p *part) with(path []string, value *part) *part {
	if len(path) == 0 {
		return value
	}
	changed := &part{keep: p.keep, members: slices.Clone(p.members)}
	value = memberOf(p, path[0]).with(path[1:], value)
	for i := range changed.members {
		if changed.members[i].name == path[0] {
			changed.members[i].part = value
			return changed
		}
	}
	changed.members = append(changed.members, partMember{path[0], value})
	return changed
}
