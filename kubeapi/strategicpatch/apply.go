package strategicpatch

import (
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/schema"
)

// Apply applies patch to doc, whose schema is t. Both are JSON objects in compact form and
// are not modified. The result is at most as long as both together. An error has code
// Invalid and names the field. Its status is 400 if the patch is invalid, and 422 if the
// patch cannot be applied to doc.
func Apply(doc, patch []byte, t *schema.Type) ([]byte, error) {
	root := node{raw: doc}
	at := fieldPath{}
	c, err := parseObjectPatch(patch, at)
	if err != nil {
		return nil, err
	}
	if c.directive != directiveMerge {
		return nil, at.invalid("$patch: %s is not allowed for the whole object", c.directive)
	}
	if err := root.merge(c, t, at); err != nil {
		return nil, err
	}
	return root.append(make([]byte, 0, len(doc)+len(patch))), nil
}

// mergeValue applies value, an object of the patch, to the object n.
func (n *node) mergeValue(value []byte, t *schema.Type, at fieldPath) error {
	c, err := parseObjectPatch(value, at)
	if err != nil {
		return err
	}
	switch c.directive {
	case directiveDelete:
		*n = node{raw: []byte("{}")}
		return nil
	case directiveReplace:
		fresh, err := c.newObjectNode(at)
		*n = fresh
		return err
	}
	return n.merge(c, t, at)
}

// merge applies c to the object n.
func (n *node) merge(c *objectPatch, t *schema.Type, at fieldPath) error {
	o, err := n.parseObject(at)
	if err != nil {
		return err
	}
	if c.retain != nil {
		o.retain(c.retain)
	}
	for i := range c.fields {
		f := &c.fields[i]
		if err := o.applyField(f, t.Field(f.name), at.member(f.name)); err != nil {
			return err
		}
	}
	return nil
}

// applyField applies the patch of one member. f is its schema.
func (o *object) applyField(c *fieldPatch, f schema.Field, at fieldPath) error {
	old := o.find(c.name)
	present := old != nil && old.kind() != 'n'
	switch {
	case c.value == nil:
		if !present {
			return nil // no elements to order or delete
		}
		if old.kind() != '[' {
			return at.inapplicable("not a list; its elements cannot be ordered or deleted")
		}
		return old.applyToList(c, f, at)
	case string(c.value) == "null":
		o.remove(c.name)
		return nil
	case present && old.kind() == '{' && c.value[0] == '{':
		return old.mergeValue(c.value, f.Type, at)
	case present && old.kind() == '[' && c.value[0] == '[':
		return old.applyToList(c, f, at)
	}
	added, keep, err := newNode(c.value, at)
	switch {
	case err != nil:
		return err
	case !keep:
		o.remove(c.name)
		return nil
	}
	o.set(c.name, c.key, added)
	if l := added.list; l != nil {
		return l.applyDirectives(c, l.resetKeys(f.MergeKey), f.MergeKey, at)
	}
	return nil
}

// newObjectNode returns an object that contains only the members of the patch.
func (p *objectPatch) newObjectNode(at fieldPath) (node, error) {
	o := newObject(len(p.fields))
	for _, f := range p.fields {
		if f.value == nil || string(f.value) == "null" {
			continue
		}
		n, keep, err := newNode(f.value, at.member(f.name))
		if err != nil {
			return node{}, err
		}
		if keep {
			o.set(f.name, f.key, n)
		}
	}
	return node{object: o}, nil
}

func newListNode(value []byte, at fieldPath) (node, error) {
	if err := at.checkDepth(); err != nil {
		return node{}, err
	}
	l := &list{}
	i := 0
	err := rawjson.Elements(value, func(s rawjson.Span) error {
		here := at.element(i)
		i++
		e, err := parseElementPatch(s.Of(value), here)
		if err != nil || e.directive == directiveDelete || e.directive == directiveReplace {
			return err
		}
		n, keep, err := newNode(e.value, here)
		if err == nil && keep {
			l.items = append(l.items, &item{node: n, position: -1})
		}
		return err
	})
	return node{list: l}, err
}
