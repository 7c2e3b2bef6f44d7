package postgres

import (
	"cmp"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// A transaction collects the changes between begin and commit. The tables change only at the
// commit, so a connection that is lost within a transaction has no effect.
type transaction struct {
	changes []rowChange
	length  int // the number of changes, including those of tables that only other servers serve
}

// A rowChange is a message about rows of one table.
type rowChange struct {
	table    *table
	index    int // in the transaction, from 0
	old, new tuple
	truncate bool
}

// add adds a change of rows, whose table is nil if it is not served. It copies the values, which
// are valid only until the next message.
func (t *transaction) add(c rowChange) {
	c.index = t.length
	t.length++
	if c.table != nil {
		c.old, c.new = c.old.clone(), c.new.clone()
		t.changes = append(t.changes, c)
	}
}

// clone returns a copy of t whose values do not refer to a message.
func (t tuple) clone() tuple {
	size := 0
	for _, v := range t {
		size += len(v.text)
	}
	copied, texts := slices.Clone(t), make([]byte, 0, size)
	for i, v := range t {
		start := len(texts)
		texts = append(texts, v.text...)
		copied[i].text = texts[start:len(texts):len(texts)]
	}
	return copied
}

// perChange is the number of versions for each change: a change of the key is a delete and a
// create.
const perChange = 2

// firstVersion returns the lowest version of the changes of a transaction.
func (c commit) firstVersion() listwatch.Version { return c.commit.version() + perChange }

// versions calls f with each change and the last of its versions. The last change has the version
// of the end of the commit record. The changes before it have the versions just below, down to the
// version of the start of the record. No other transaction has these versions. If they do not
// suffice, the first changes share a version, and no watch can start there.
func (t *transaction) versions(c commit, f func(listwatch.Version, *rowChange) error) error {
	first, last := c.firstVersion(), c.end.version()
	for i := range t.changes {
		v := first
		if after := perChange * listwatch.Version(t.length-1-t.changes[i].index); last-first > after {
			v = last - after
		}
		if err := f(v, &t.changes[i]); err != nil {
			return err
		}
	}
	return nil
}

// An outcome is the effect of a transaction on one table.
type outcome struct {
	table *table
	rows  map[place]*row
	order []*row // the rows in the order in which they were first changed
	// namespaces holds, by name, the namespaces of the rows that the transaction has changed. It is
	// used if the identity does not contain the namespace. ok is false for a deleted row.
	namespaces map[string]namespace
}

type namespace struct {
	name string
	ok   bool
}

// A row holds an object before and after the transaction, or nil if there is none.
type row struct {
	place
	before, object *listwatch.Object
	hidden         *hiddenRow        // the row after the transaction if it is not an object
	version        listwatch.Version // of its last change
}

func (r *row) exists() bool { return r.object != nil || r.hidden != nil }

// outcomes returns the effect of the transaction on each table. DB.feeding must be held.
func (t *transaction) outcomes(c commit) (map[*table]*outcome, error) {
	all := map[*table]*outcome{}
	err := t.versions(c, func(v listwatch.Version, change *rowChange) error {
		o := all[change.table]
		if o == nil {
			o = &outcome{table: change.table, rows: map[place]*row{}, namespaces: map[string]namespace{}}
			all[change.table] = o
		}
		if change.truncate {
			o.truncate(c.firstVersion(), v)
			return nil
		}
		return o.apply(change, v)
	})
	return all, err
}

// apply applies one change of a row. A change of its place is a delete and a create.
func (o *outcome) apply(c *rowChange, v listwatch.Version) error {
	s := o.table.shape
	c.completeIdentity(s)
	before := c.old
	if before == nil {
		before = c.new
	}
	was := o.row(o.placeBefore(before))
	if c.new == nil {
		o.remove(was, v)
		return nil
	}
	if err := o.restore(c.new, was); err != nil {
		return err
	}
	is := was
	if p := s.placeOf(c.new); p != was.place {
		o.remove(was, v-1)
		is = o.row(p)
	}
	o.put(is, c.new, v)
	return nil
}

// completeIdentity sets the values of the identity that an update has sent in the old tuple only,
// because they are long.
func (c *rowChange) completeIdentity(s *shape) {
	for _, at := range s.identity {
		if c.old != nil && c.new != nil && c.new[at].kind == isUnchanged {
			c.new[at] = c.old[at]
		}
	}
}

// restore fills in the values that an update of r did not send.
func (o *outcome) restore(new tuple, r *row) error {
	if at := o.table.shape.namespaceAt; at != absent && new[at].kind == isUnchanged {
		new[at] = value{text: []byte(r.Namespace), kind: isText}
	}
	switch {
	case r.hidden != nil:
		new.restore(r.hidden.values)
	case !o.table.shape.restore(new, r.object):
		return &tableError{o.table, "an update left a value as it was that is not known here"}
	}
	return nil
}

// put sets the values of r.
func (o *outcome) put(r *row, new tuple, v listwatch.Version) {
	var err error
	r.hidden, r.version = nil, v
	if r.object, err = o.table.object(o.table.shape, r.place, new, v); err != nil {
		r.object, r.hidden = nil, &hiddenRow{new, v, err}
	}
	o.namespaces[r.Name] = namespace{r.Namespace, true}
}

// placeBefore returns the place that the row of a tuple had before its change.
func (o *outcome) placeBefore(t tuple) place {
	s := o.table.shape
	p := s.placeOf(t)
	if s.knowsNamespace() {
		return p
	}
	if n, ok := o.namespaces[p.Name]; ok {
		p.Namespace = n.name
	} else {
		p.Namespace = o.table.namespaces[p.Name]
	}
	return p
}

// row returns the row at p, after the changes so far.
func (o *outcome) row(p place) *row {
	r := o.rows[p]
	if r == nil {
		r = o.add(p, o.table.lookup(p))
		if hidden, ok := o.table.hidden[p.collection][p.Key]; ok {
			r.hidden = &hidden
		}
	}
	return r
}

// add adds the row at p. The object before the transaction is before.
func (o *outcome) add(p place, before *listwatch.Object) *row {
	r := &row{place: p, before: before, object: before}
	o.rows[p] = r
	o.order = append(o.order, r)
	return r
}

func (o *outcome) remove(r *row, v listwatch.Version) {
	if r.exists() {
		r.object, r.hidden, r.version = nil, nil, v
		o.namespaces[r.Name] = namespace{}
	}
}

// truncate deletes all rows. Each delete gets a version of its own if there are enough between
// first and last, so that a client that is cut off between two deletes can resume.
func (o *outcome) truncate(first, last listwatch.Version) {
	for name, c := range o.table.collections {
		for _, object := range c.cache.Objects() {
			if p := (place{name, object.Key}); o.rows[p] == nil {
				o.add(p, object)
			}
		}
	}
	for name, rows := range o.table.hidden {
		for key := range rows {
			o.row(place{name, key})
		}
	}
	rows := slices.DeleteFunc(slices.Clone(o.order), func(r *row) bool { return r.before == nil && !r.exists() })
	slices.SortFunc(rows, func(a, b *row) int { return a.compare(b.place) })
	for i, r := range rows {
		v := first
		if after := listwatch.Version(len(rows) - 1 - i); last-first > after {
			v = last - after
		}
		r.object, r.hidden, r.version = nil, nil, v
		o.namespaces[r.Name] = namespace{}
	}
}

// addChanges adds the changes of the table's objects to all, and returns their number. It omits an
// object that was created and deleted, and an object whose content is the same as before.
func (o *outcome) addChanges(all map[*watchcache.Cache][]watchcache.Change) (n int) {
	for _, r := range o.order {
		if r.object == r.before || r.object != nil && r.before != nil && sameContent(r.object, r.before) {
			continue
		}
		cache := o.table.collections[r.collection].cache // it has or had the object
		all[cache] = append(all[cache], watchcache.Change{Key: r.Key, Version: r.version, Object: r.object})
		n++
	}
	for _, c := range o.table.collections {
		slices.SortFunc(all[c.cache], func(a, b watchcache.Change) int {
			return cmp.Or(cmp.Compare(a.Version, b.Version), a.Key.Compare(b.Key))
		})
	}
	return n
}

// reportHidden reports the rows that are hidden after the transaction.
func (o *outcome) reportHidden() {
	for _, r := range o.order {
		if r.hidden != nil {
			o.table.reportHidden(r.place, *r.hidden)
		}
	}
}

// keep stores the hidden rows and the namespaces of the rows in the table. It is called after the
// changes were applied. DB.mu must be held.
func (o *outcome) keep() {
	for _, r := range o.order {
		o.table.hidden.set(r.place, r.hidden)
	}
	if o.table.shape.knowsNamespace() {
		return
	}
	for name, n := range o.namespaces {
		if n.ok {
			o.table.namespaces[name] = n.name
		} else {
			delete(o.table.namespaces, name)
		}
	}
}
