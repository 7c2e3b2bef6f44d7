package strategicpatch

import (
	"slices"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// A node is a JSON value under construction. It is parsed only once, before its first
// change. This bounds the work for a patch that changes it many times.
type node struct {
	raw    []byte // used while object and list are nil
	object *object
	list   *list
}

// newNode returns the node for a value that a patch adds, without its nulls and directives.
// keep is false if a directive deletes the value.
func newNode(value []byte, at fieldPath) (n node, keep bool, err error) {
	switch value[0] {
	case '{':
		c, err := parseObjectPatch(value, at)
		if err != nil || c.directive == directiveDelete {
			return node{}, false, err
		}
		n, err := c.newObjectNode(at)
		return n, true, err
	case '[':
		n, err := newListNode(value, at)
		return n, true, err
	}
	return node{raw: value}, true, nil
}

// kind returns the first byte of the JSON of n, such as '{', or 'n' for null.
func (n *node) kind() byte {
	switch {
	case n.object != nil:
		return '{'
	case n.list != nil:
		return '['
	}
	return n.raw[0]
}

// parseObject parses n, which must be an object, into its members.
func (n *node) parseObject(at fieldPath) (*object, error) {
	if n.object != nil {
		return n.object, nil
	}
	members, err := rawjson.Split(n.raw)
	if err != nil {
		return nil, at.inapplicable("%v", err)
	}
	o := newObject(len(members))
	for _, m := range members {
		o.set(m.Name, m.Key, node{raw: m.Value})
	}
	n.object = o
	return o, nil
}

// parseList parses n, which must be a list, into its elements.
func (n *node) parseList() *list {
	if n.list != nil {
		return n.list
	}
	n.list = &list{}
	_ = rawjson.Elements(n.raw, func(s rawjson.Span) error { // no error: n is a list
		raw := s.Of(n.raw)
		n.list.items = append(n.list.items, &item{node: node{raw: raw}})
		return nil
	})
	return n.list
}

// append appends the JSON of n to dst.
func (n *node) append(dst []byte) []byte {
	switch {
	case n.object != nil:
		dst = append(dst, '{')
		first := true
		for i := range n.object.members {
			m := &n.object.members[i]
			if m.removed {
				continue
			}
			dst = appendComma(dst, &first)
			dst = append(append(dst, m.key...), ':')
			dst = m.value.append(dst)
		}
		return append(dst, '}')
	case n.list != nil:
		dst = append(dst, '[')
		first := true
		for _, i := range n.list.items {
			dst = i.append(appendComma(dst, &first))
		}
		return append(dst, ']')
	}
	return append(dst, n.raw...)
}

func appendComma(dst []byte, first *bool) []byte {
	if !*first {
		dst = append(dst, ',')
	}
	*first = false
	return dst
}

// An object is a JSON object under construction. Its members keep their order.
type object struct {
	members []member
	// index holds the indexes of the members by name. It is nil while there are few members: most
	// objects of a long list are small, and a map takes more memory than their members.
	index map[string]int
}

// fewMembers is the maximum number of members of an object without an index.
const fewMembers = 8

type member struct {
	name    string
	key     []byte // name as written, with quotes
	value   node
	removed bool
}

func newObject(size int) *object {
	return &object{members: make([]member, 0, size)}
}

// position returns the index of a member, or -1 if there is none.
func (o *object) position(name string) int {
	if o.index == nil {
		return slices.IndexFunc(o.members, func(m member) bool { return m.name == name && !m.removed })
	}
	if i, ok := o.index[name]; ok && !o.members[i].removed {
		return i
	}
	return -1
}

// find returns the value of a member, or nil if there is none.
func (o *object) find(name string) *node {
	if i := o.position(name); i >= 0 {
		return &o.members[i].value
	}
	return nil
}

// set replaces the value of a member or appends a new member.
func (o *object) set(name string, key []byte, value node) {
	if n := o.find(name); n != nil {
		*n = value
		return
	}
	o.members = append(o.members, member{name: name, key: key, value: value})
	switch {
	case o.index != nil:
		o.index[name] = len(o.members) - 1
	case len(o.members) > fewMembers:
		o.buildIndex()
	}
}

func (o *object) buildIndex() {
	o.index = make(map[string]int, len(o.members))
	for i := range o.members {
		o.index[o.members[i].name] = i
	}
}

func (o *object) remove(name string) {
	if i := o.position(name); i >= 0 {
		o.members[i].removed = true
	}
}

// retain deletes all members whose names are not in names. It also shrinks the slice of members, so
// that repeated calls take little time.
func (o *object) retain(names map[string]bool) {
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.removed || !names[m.name] })
	if o.index != nil {
		o.buildIndex()
	}
}

func (n *node) keyOf(mergeKey string) string {
	switch {
	case mergeKey == "" && n.raw != nil && n.object == nil:
		return scalarKey(n.raw)
	case mergeKey == "" || n.kind() != '{':
		return ""
	case n.object == nil:
		return scalarKey(rawjson.Lookup(n.raw, mergeKey))
	}
	if v := n.object.find(mergeKey); v != nil {
		return scalarKey(v.raw)
	}
	return ""
}

// scalarKey returns equal keys for equal scalars. Strings are compared by content, and
// numbers by their text. The key is empty for null, for values that are not scalars, and
// for a missing value.
func scalarKey(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '{', '[', 'n':
		return ""
	case '"':
		s, err := rawjson.String(raw)
		if err != nil {
			return ""
		}
		return `"` + s
	}
	return string(raw)
}
