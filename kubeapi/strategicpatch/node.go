package strategicpatch

import (
	"slices"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// A node is a JSON value in the making: as it was written, until somebody looks into it. Taking each apart once bounds the work,
// however often a patch comes back to it.
type node struct {
	raw    []byte // what counts while the others are nil
	object *object
	list   *list
}

// kind is the first byte of n as JSON.
func (n *node) kind() byte {
	switch {
	case n.object != nil:
		return '{'
	case n.list != nil:
		return '['
	}
	return n.raw[0]
}

// open takes an object apart.
func (n *node) open(at place) (*object, error) {
	if n.object != nil {
		return n.object, nil
	}
	members, err := rawjson.Split(n.raw)
	if err != nil {
		return nil, at.misfit("%v", err)
	}
	o := newObject(len(members))
	for _, m := range members {
		o.set(m.Name, m.Key, node{raw: m.Value})
	}
	n.object = o
	return o, nil
}

// openList takes a list apart.
func (n *node) openList() *list {
	if n.list != nil {
		return n.list
	}
	n.list = &list{}
	_ = rawjson.Elements(n.raw, func(s rawjson.Span) error { // n is a list
		raw := s.Of(n.raw)
		n.list.items = append(n.list.items, &item{node: node{raw: raw}})
		return nil
	})
	return n.list
}

// append appends n as JSON.
func (n *node) append(dst []byte) []byte {
	switch {
	case n.object != nil:
		dst = append(dst, '{')
		first := true
		for i := range n.object.members {
			m := &n.object.members[i]
			if m.gone {
				continue
			}
			dst = comma(dst, &first)
			dst = append(append(dst, m.key...), ':')
			dst = m.value.append(dst)
		}
		return append(dst, '}')
	case n.list != nil:
		dst = append(dst, '[')
		first := true
		for _, i := range n.list.items {
			dst = i.append(comma(dst, &first))
		}
		return append(dst, ']')
	}
	return append(dst, n.raw...)
}

func comma(dst []byte, first *bool) []byte {
	if !*first {
		dst = append(dst, ',')
	}
	*first = false
	return dst
}

// An object is a JSON object in the making. Its members stay in their order.
type object struct {
	members []member
	index   map[string]int
}

type member struct {
	name  string
	key   []byte // name as it is spelt, in quotes
	value node
	gone  bool
}

func newObject(size int) *object {
	return &object{members: make([]member, 0, size), index: make(map[string]int, size)}
}

// find returns the member's value, nil where there is none.
func (o *object) find(name string) *node {
	i, ok := o.index[name]
	if !ok || o.members[i].gone {
		return nil
	}
	return &o.members[i].value
}

// set sets the member in its place, or adds it at the end.
func (o *object) set(name string, key []byte, value node) {
	if n := o.find(name); n != nil {
		*n = value
		return
	}
	o.index[name] = len(o.members)
	o.members = append(o.members, member{name: name, key: key, value: value})
}

func (o *object) remove(name string) {
	if i, ok := o.index[name]; ok {
		o.members[i].gone = true
	}
}

// keep removes all members but those, for good: what is kept is no longer than the patch that names it, however often it does.
func (o *object) keep(names map[string]bool) {
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.gone || !names[m.name] })
	clear(o.index)
	for i, m := range o.members {
		o.index[m.name] = i
	}
}
