package strategicpatch

import (
	"slices"

	"github.com/listwatch/listwatch/kubeapi/schema"
)

// A list is a JSON list under construction.
type list struct {
	items  []*item
	visits int
}

// An item is an element of a list.
type item struct {
	node
	key      string // empty if the element has no key
	position int    // index of the first element with this key before the patch; -1 if new
}

// maxVisits limits how often a patch may change the same list, because each change requires
// a pass over the list. A list is changed repeatedly if it is in an element of an outer list,
// and several elements of the patch have the key of that element.
const maxVisits = 16

// applyToList applies c to the list n at the given path.
func (n *node) applyToList(c *fieldPatch, f schema.Field, at fieldPath) error {
	l := n.parseList()
	if l.visits++; l.visits > maxVisits {
		return at.invalid("the patch changes the list more than %d times", maxVisits)
	}
	l.assignKeys(f.MergeKey)
	var keys []string // keys of the elements that the patch sets
	var err error
	switch {
	case c.value == nil:
	case f.Merge:
		keys, err = l.merge(c.value, f, at)
	default:
		keys, err = l.replace(c.value, f.MergeKey, at)
	}
	if err != nil {
		return err
	}
	return l.applyDirectives(c, keys, f.MergeKey, at)
}

// applyDirectives orders the elements and deletes scalars as c requires. keys are the keys
// of the elements that c sets.
func (l *list) applyDirectives(c *fieldPatch, keys []string, mergeKey string, at fieldPath) error {
	if c.order != nil {
		order, err := parseKeys(c.order, mergeKey, at.parent.member(setOrderPrefix+c.name))
		if err != nil {
			return err
		}
		if !isSubsequence(keys, order) {
			return at.invalid("its elements must be among the elements of %s, in the same order", setOrderPrefix+c.name)
		}
		l.reorder(order)
	}
	if c.delete != nil {
		return l.deleteScalars(c.delete, mergeKey, at.parent.member(deleteScalarsPrefix+c.name))
	}
	return nil
}

// assignKeys sets the key and the position of every item. Items with equal keys get the position
// of the first of them.
func (l *list) assignKeys(mergeKey string) {
	first := make(map[string]int, len(l.items))
	for i, it := range l.items {
		it.key, it.position = it.keyOf(mergeKey), i
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

// replace replaces the elements of l with the elements of value, and returns their keys.
func (l *list) replace(value []byte, mergeKey string, at fieldPath) (keys []string, err error) {
	n, err := newListNode(value, at)
	if err != nil {
		return nil, err
	}
	l.items = n.list.items
	return l.resetKeys(mergeKey), nil
}

// resetKeys sets the key of every item and returns the keys.
func (l *list) resetKeys(mergeKey string) []string {
	keys := make([]string, len(l.items))
	for i, it := range l.items {
		it.key = it.keyOf(mergeKey)
		keys[i] = it.key
	}
	return keys
}

// merge merges a list of the patch into l: it deletes elements, merges existing ones, and
// inserts new ones as early as the order of the patch allows.
func (l *list) merge(value []byte, f schema.Field, at fieldPath) (keys []string, err error) {
	p, err := parseListPatch(value, f.MergeKey, at)
	if err != nil {
		return nil, err
	}
	if p.replace {
		l.items = nil
	}
	before := len(l.items)
	l.items = slices.DeleteFunc(l.items, func(it *item) bool { return p.deleted[it.key] })
	if f.MergeKey == "" {
		l.dropDuplicates()
	}
	l.assignKeys(f.MergeKey)
	keys = make([]string, len(p.elements))
	for i := range p.elements {
		keys[i] = p.elements[i].key
	}
	added, err := l.setElements(p, f, at)
	if err != nil || p.replace {
		return keys, err
	}
	l.reorder(keys)
	// In Kubernetes a new element takes the position of a deleted one, as a side effect of
	// lists that share memory, and this loop does the same. As a result, a container that
	// replaces another one comes after the containers that the server has added.
	for i, it := range added {
		if it.position = len(l.items) - len(added) + i; it.position >= before {
			it.position = -1
		}
	}
	return keys, nil
}

// setElements merges elements of the patch into existing elements with the same key. It appends all
// other elements of the patch to l and returns them.
func (l *list) setElements(p listPatch, f schema.Field, at fieldPath) (added []*item, err error) {
	index := make(map[string]*item, len(l.items))
	for _, it := range l.items {
		if index[it.key] == nil {
			index[it.key] = it
		}
	}
	for _, s := range p.elements {
		there := index[s.key]
		switch {
		case there == nil || p.replace:
			n, _, err := newNode(s.value, at.element(s.index))
			if err != nil {
				return nil, err
			}
			index[s.key] = &item{node: n, key: s.key, position: -1}
			added = append(added, index[s.key])
		case f.MergeKey != "":
			if err := there.mergeValue(s.value, f.Type, at.element(s.index)); err != nil {
				return nil, err
			}
		}
	}
	l.items = append(l.items, added...)
	return added, nil
}

// dropDuplicates keeps only the first of equal scalars.
func (l *list) dropDuplicates() {
	seen := map[string]bool{}
	l.items = slices.DeleteFunc(l.items, func(it *item) bool {
		twice := it.key != "" && seen[it.key]
		seen[it.key] = true
		return twice
	})
}

// deleteScalars deletes the elements that are equal to an element of value, which is a JSON list.
func (l *list) deleteScalars(value []byte, mergeKey string, at fieldPath) error {
	if mergeKey != "" {
		return at.invalid(
			"the elements of the list are objects; to delete one, use an element with its %s and $patch: delete",
			mergeKey)
	}
	keys, err := parseKeys(value, "", at)
	if err != nil {
		return err
	}
	deleted := make(map[string]bool, len(keys))
	for _, k := range keys {
		deleted[k] = true
	}
	l.items = slices.DeleteFunc(l.items, func(it *item) bool { return deleted[it.key] })
	return nil
}
