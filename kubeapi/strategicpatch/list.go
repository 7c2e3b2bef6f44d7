package strategicpatch

import (
	"slices"

	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/schema"
)

// maxVisits is how often a patch may come back to one list, by elements of one key in a list above it: each time costs a walk over it.
const maxVisits = 16

// A list is a JSON list in the making.
type list struct {
	items  []*item
	visits int
}

// An item is an element of a list.
type item struct {
	node
	key      string // tells it apart from others; empty: nothing does
	position int    // where the first element of its key stood before the patch; -1: nowhere
}

// changeList makes c of the list of n. at is the place of the list.
func (n *node) changeList(c *change, f schema.Field, at place) error {
	l := n.openList()
	if l.visits++; l.visits > maxVisits {
		return at.bad("the patch changes the list more than %d times", maxVisits)
	}
	l.number(f.MergeKey)
	var said []string // the keys of the elements that the patch sets
	var err error
	switch {
	case c.value == nil:
	case f.Merge:
		said, err = l.merge(c.value, f, at)
	default:
		said, err = l.replace(c.value, f.MergeKey, at)
	}
	if err != nil {
		return err
	}
	return l.obey(c, said, f.MergeKey, at)
}

// obey orders the elements and deletes some, as c says that has set those of the keys said.
func (l *list) obey(c *change, said []string, mergeKey string, at place) error {
	if c.order != nil {
		order, err := readKeys(c.order, mergeKey, at.up.member(elementOrder+c.name))
		if err != nil {
			return err
		}
		if !inOrder(said, order) {
			return at.bad("its elements must be among those of %s, and in the same order", elementOrder+c.name)
		}
		l.arrange(order)
	}
	if c.delete != nil {
		return l.deleteScalars(c.delete, mergeKey, at.up.member(primitiveDelete+c.name))
	}
	return nil
}

// number gives every item its key and its position.
func (l *list) number(mergeKey string) {
	first := make(map[string]int, len(l.items))
	for i, it := range l.items {
		it.key, it.position = it.keyBy(mergeKey), i
		if it.key == "" {
			continue
		}
		if p, twice := first[it.key]; twice {
			it.position = p
		} else {
			first[it.key] = i
		}
	}
}

func (n *node) keyBy(mergeKey string) string {
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

// scalarKey returns the same for two scalars that are equal: strings by what they mean, numbers as they are spelt. It is empty for
// null, for what is no scalar, and for nothing.
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

// replace makes l a list of what the patch says.
func (l *list) replace(value []byte, mergeKey string, at place) (said []string, err error) {
	n, err := freshList(value, at)
	if err != nil {
		return nil, err
	}
	l.items = n.list.items
	return l.keys(mergeKey), nil
}

// keys gives every item its key, and returns them.
func (l *list) keys(mergeKey string) []string {
	keys := make([]string, len(l.items))
	for i, it := range l.items {
		it.key = it.keyBy(mergeKey)
		keys[i] = it.key
	}
	return keys
}

// merge merges a list of the patch into l: what is deleted goes, what is there is merged, and what is new comes as early as the order
// of the patch allows.
func (l *list) merge(value []byte, f schema.Field, at place) (said []string, err error) {
	p, err := readElements(value, f.MergeKey, at)
	if err != nil {
		return nil, err
	}
	if p.replaces {
		l.items = nil
	}
	before := len(l.items)
	l.items = slices.DeleteFunc(l.items, func(it *item) bool { return p.deleted[it.key] })
	if f.MergeKey == "" {
		l.dedupe()
	}
	l.number(f.MergeKey)
	for _, s := range p.set {
		said = append(said, s.key)
	}
	added, err := l.set(p, f)
	if err != nil || p.replaces {
		return said, err
	}
	l.arrange(said)
	// In Kubernetes, lists that share their memory let what is new pass for what was deleted, wherever that was: a container that
	// takes the place of another one stands behind those that the server has added.
	for i, it := range added {
		if it.position = len(l.items) - len(added) + i; it.position >= before {
			it.position = -1
		}
	}
	return said, nil
}

// set merges what the patch sets into the elements that are there, and adds, and returns, those that are not.
func (l *list) set(p elements, f schema.Field) (added []*item, err error) {
	index := make(map[string]*item, len(l.items))
	for _, it := range l.items {
		if index[it.key] == nil {
			index[it.key] = it
		}
	}
	for _, s := range p.set {
		there := index[s.key]
		switch {
		case there == nil || p.replaces:
			n, _, err := fresh(s.value, s.at)
			if err != nil {
				return nil, err
			}
			index[s.key] = &item{node: n, key: s.key, position: -1}
			added = append(added, index[s.key])
		case f.MergeKey != "":
			if err := there.mergeValue(s.value, f.Type, s.at); err != nil {
				return nil, err
			}
		}
	}
	l.items = append(l.items, added...)
	return added, nil
}

// dedupe leaves of scalars that are equal the first.
func (l *list) dedupe() {
	seen := map[string]bool{}
	l.items = slices.DeleteFunc(l.items, func(it *item) bool {
		twice := it.key != "" && seen[it.key]
		seen[it.key] = true
		return twice
	})
}

// deleteScalars deletes the elements that are equal to one in value, a list.
func (l *list) deleteScalars(value []byte, mergeKey string, at place) error {
	if mergeKey != "" {
		return at.bad("the elements of the list are objects; one is deleted by an element with its %s and $patch: delete", mergeKey)
	}
	keys, err := readKeys(value, "", at)
	if err != nil {
		return err
	}
	gone := make(map[string]bool, len(keys))
	for _, k := range keys {
		gone[k] = true
	}
	l.items = slices.DeleteFunc(l.items, func(it *item) bool { return gone[it.key] })
	return nil
}
