package strategicpatch

import (
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/schema"
)

// Apply returns what patch makes of doc, whose fields t knows. Both are JSON objects in compact form; neither is modified. The result is
// never longer than both together. An error of code Invalid names the field: of status 400 where the patch is wrong in itself, 422 where
// it does not fit doc.
func Apply(doc, patch []byte, t *schema.Type) ([]byte, error) {
	root := node{raw: doc}
	at := place{}
	c, err := readChanges(patch, at)
	if err != nil {
		return nil, err
	}
	if c.directive != merge {
		return nil, at.bad("a patch can't %s an object as a whole", c.directive)
	}
	if err := root.merge(c, t, at); err != nil {
		return nil, err
	}
	return root.append(make([]byte, 0, len(doc)+len(patch))), nil
}

// mergeValue merges value, of the patch, into the object of n, or makes it one that is as the patch says.
func (n *node) mergeValue(value []byte, t *schema.Type, at place) error {
	c, err := readChanges(value, at)
	if err != nil {
		return err
	}
	switch c.directive {
	case remove:
		*n = node{raw: []byte("{}")}
		return nil
	case replace:
		fresh, err := c.fresh(at)
		*n = fresh
		return err
	}
	return n.merge(c, t, at)
}

// merge makes changes to the object of n.
func (n *node) merge(c *changes, t *schema.Type, at place) error {
	o, err := n.open(at)
	if err != nil {
		return err
	}
	if c.retain != nil {
		o.keep(c.retain)
	}
	for i := range c.fields {
		f := &c.fields[i]
		if err := o.change(f, t.Field(f.name), at.member(f.name)); err != nil {
			return err
		}
	}
	return nil
}

// change makes the change of one member, of which f is known.
func (o *object) change(c *change, f schema.Field, at place) error {
	old := o.find(c.name)
	present := old != nil && old.kind() != 'n'
	switch {
	case c.value == nil:
		if !present {
			return nil // there is nothing to order or to delete from
		}
		if old.kind() != '[' {
			return at.misfit("it is no list, so its elements can be neither ordered nor deleted")
		}
		return old.changeList(c, f, at)
	case string(c.value) == "null":
		o.remove(c.name)
		return nil
	case present && old.kind() == '{' && c.value[0] == '{':
		return old.mergeValue(c.value, f.Type, at)
	case present && old.kind() == '[' && c.value[0] == '[':
		return old.changeList(c, f, at)
	}
	added, keep, err := fresh(c.value, at)
	switch {
	case err != nil:
		return err
	case !keep:
		o.remove(c.name)
		return nil
	}
	o.set(c.name, c.key, added)
	if l := added.list; l != nil {
		return l.obey(c, l.keys(f.MergeKey), f.MergeKey, at)
	}
	return nil
}

// fresh makes a node of what a patch adds: without nulls and directives. It is not to be kept where the patch deletes it.
func fresh(value []byte, at place) (n node, keep bool, err error) {
	switch value[0] {
	case '{':
		c, err := readChanges(value, at)
		if err != nil || c.directive == remove {
			return node{}, false, err
		}
		n, err := c.fresh(at)
		return n, true, err
	case '[':
		n, err := freshList(value, at)
		return n, true, err
	}
	return node{raw: value}, true, nil
}

// fresh makes an object of nothing but the changes.
func (c *changes) fresh(at place) (node, error) {
	o := newObject(len(c.fields))
	for _, f := range c.fields {
		if f.value == nil || string(f.value) == "null" {
			continue
		}
		n, keep, err := fresh(f.value, at.member(f.name))
		if err != nil {
			return node{}, err
		}
		if keep {
			o.set(f.name, f.key, n)
		}
	}
	return node{object: o}, nil
}

func freshList(value []byte, at place) (node, error) {
	if err := at.tooDeep(); err != nil {
		return node{}, err
	}
	l := &list{}
	i := 0
	err := rawjson.Elements(value, func(s rawjson.Span) error {
		here := at.element(i)
		i++
		e, err := readElement(s.Of(value), here)
		if err != nil || e.directive == remove || e.directive == replace {
			return err
		}
		n, keep, err := fresh(e.value, here)
		if err == nil && keep {
			l.items = append(l.items, &item{node: n, position: -1})
		}
		return err
	})
	return node{list: l}, err
}
