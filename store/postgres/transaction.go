package postgres

import (
	"cmp"
	"maps"
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
	first    listwatch.Version // the lowest version of the transaction
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

// An outcome is the effect of a transaction on one table or collection.
type outcome struct {
	table *table
	rows  map[listwatch.Key]*row
	order []listwatch.Key // of rows, in which they were first changed
	// namespaces holds, by name, the namespaces of the rows that the transaction has changed. It is
	// used if the identity does not contain the namespace. ok is false for a deleted row.
	namespaces map[string]placed
}

// A row holds an object before and after the transaction, or nil if there is none.
type row struct {
	before, object *listwatch.Object
	hidden         *hiddenRow        // the row after the transaction if it is not an object
	version        listwatch.Version // of its last change
}

func (r *row) exists() bool { return r.object != nil || r.hidden != nil }

type placed struct {
	namespace string
	ok        bool
}

// outcomes are the effects of a transaction on the tables.
type outcomes map[*table]*outcome

// outcomes returns the effect of the transaction on each table. db.feeding must be held.
func (t *transaction) outcomes(db *DB, c commit) (outcomes, error) {
	all := outcomes{}
	err := t.versions(c, func(v listwatch.Version, change *rowChange) error {
		change.first = c.firstVersion()
		switch of := change.table; {
		case of.collections != nil:
			return all.applyDocument(db, change, v)
		default:
			return all.apply(of, change, v)
		}
	})
	return all, err
}

// applyDocument applies a change of the table of documents to its collections. A change of the
// collection is a delete and a create.
func (o outcomes) applyDocument(db *DB, c *rowChange, v listwatch.Version) error {
	of := func(row tuple) *table {
		if row == nil {
			return nil
		}
		return db.collectionOf(c.table, string(row[c.table.shape.collectionAt].text))
	}
	if c.truncate {
		for _, name := range slices.Sorted(maps.Keys(c.table.collections)) {
			v = o.effectOn(c.table.collections[name]).truncate(c.first, v)
		}
		return nil
	}
	c.completeIdentity(c.table.shape)
	was, is := of(c.old), of(c.new)
	if was == nil || is == nil || was == is {
		return o.apply(cmp.Or(is, was), c, v)
	}
	before := o.effectOn(was)
	if err := before.restore(c.new, before.place(c.old)); err != nil {
		return err
	}
	before.remove(before.place(c.old), v-1)
	o.effectOn(is).put(c.new, v)
	return nil
}

// apply applies a change of a table.
func (o outcomes) apply(of *table, c *rowChange, v listwatch.Version) error {
	if c.truncate {
		o.effectOn(of).truncate(c.first, v)
		return nil
	}
	return o.effectOn(of).apply(c, v)
}

// effectOn returns the effect on a table, which may be empty.
func (o outcomes) effectOn(t *table) *outcome {
	if o[t] == nil {
		o[t] = &outcome{table: t, rows: map[listwatch.Key]*row{}, namespaces: map[string]placed{}}
	}
	return o[t]
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

// apply applies one change of a row.
func (o *outcome) apply(c *rowChange, v listwatch.Version) error {
	was := listwatch.Key{} // the key before the change
	switch {
	case c.old != nil:
		was = o.place(c.old)
	case c.new != nil:
		was = o.place(c.new)
	}
	if c.new == nil {
		o.remove(was, v)
		return nil
	}
	c.completeIdentity(o.table.shape)
	if err := o.restore(c.new, was); err != nil {
		return err
	}
	if is := o.table.shape.keyOf(c.new); is != was {
		o.remove(was, v-1)
	}
	o.put(c.new, v)
	return nil
}

// restore fills in the values that an update of the row at key did not send.
func (o *outcome) restore(new tuple, key listwatch.Key) error {
	s, r := o.table.shape, o.row(key)
	if at := s.namespaceAt; at != absent && new[at].kind == isUnchanged {
		new[at] = value{text: []byte(key.Namespace), kind: isText}
	}
	switch {
	case r.hidden != nil:
		new.restore(r.hidden.values)
	case !s.restore(new, r.object):
		of := o.table
		if of.collection != nil {
			of = of.parent
		}
		return &tableError{of, "an update left a value as it was that is not known here"}
	}
	return nil
}

// put sets the row with the given values.
func (o *outcome) put(new tuple, v listwatch.Version) {
	key := o.table.shape.keyOf(new)
	object, err := o.table.object(o.table.shape, new, v)
	r := o.row(key)
	r.object, r.hidden, r.version = object, nil, v
	if err != nil {
		r.object, r.hidden = nil, &hiddenRow{new, v, err}
	}
	o.namespaces[key.Name] = placed{key.Namespace, true}
}

// place returns the key that the row of a tuple had before its change.
func (o *outcome) place(t tuple) listwatch.Key {
	s := o.table.shape
	if s.knowsNamespace() {
		return s.keyOf(t)
	}
	key := listwatch.Key{Name: s.nameOf(t)}
	if p, ok := o.namespaces[key.Name]; ok {
		key.Namespace = p.namespace
	} else {
		key.Namespace = o.table.namespaces[key.Name]
	}
	return key
}

// row returns the row at key, after the changes so far.
func (o *outcome) row(key listwatch.Key) *row {
	r := o.rows[key]
	if r == nil {
		r = o.add(key, o.table.lookup(key))
		if hidden, ok := o.table.hidden[key]; ok {
			r.hidden = &hidden
		}
	}
	return r
}

// add adds the row at key. The object before the transaction is before.
func (o *outcome) add(key listwatch.Key, before *listwatch.Object) *row {
	r := &row{before: before, object: before}
	o.rows[key] = r
	o.order = append(o.order, key)
	return r
}

func (o *outcome) remove(key listwatch.Key, v listwatch.Version) {
	if r := o.row(key); r.exists() {
		r.object, r.hidden, r.version = nil, nil, v
		o.namespaces[key.Name] = placed{}
	}
}

// truncate deletes all rows. Each delete gets a version of its own if there are enough between
// first and last, so that a client that is cut off between two deletes can resume. truncate returns
// the last version for the deletes before them.
func (o *outcome) truncate(first, last listwatch.Version) listwatch.Version {
	for _, object := range o.table.objects() {
		if o.rows[object.Key] == nil {
			o.add(object.Key, object)
		}
	}
	for key := range o.table.hidden {
		o.row(key)
	}
	keys := slices.DeleteFunc(slices.Clone(o.order), func(key listwatch.Key) bool {
		r := o.rows[key]
		return r.before == nil && !r.exists()
	})
	slices.SortFunc(keys, listwatch.Key.Compare)
	for i, key := range keys {
		v := first
		if after := listwatch.Version(len(keys) - 1 - i); last-first > after {
			v = last - after
		}
		r := o.rows[key]
		r.object, r.hidden, r.version = nil, nil, v
		o.namespaces[key.Name] = placed{}
	}
	return last - min(listwatch.Version(len(keys)), last-first)
}

// changes returns the changes of the table's objects, in order of version. It omits an object that
// was created and deleted, and an object whose content is the same as before.
func (o *outcome) changes() []watchcache.Change {
	var all []watchcache.Change
	for _, key := range o.order {
		r := o.rows[key]
		if r.object == r.before ||
			r.object != nil && r.before != nil && o.table.shape.sameContent(r.object, r.before) {
			continue
		}
		all = append(all, watchcache.Change{Key: key, Version: r.version, Object: r.object})
	}
	slices.SortFunc(all, func(a, b watchcache.Change) int {
		switch {
		case a.Version < b.Version:
			return -1
		case a.Version > b.Version:
			return 1
		}
		return a.Key.Compare(b.Key)
	})
	return all
}

// reportHidden reports the rows that are hidden after the transaction.
func (o *outcome) reportHidden() {
	for key, r := range o.rows {
		if r.hidden != nil {
			o.table.reportHidden(key, *r.hidden)
		}
	}
}

// keep stores the hidden rows and the namespaces of the rows in the table. It is called after the
// changes were applied. DB.mu must be held.
func (o *outcome) keep() {
	for key, r := range o.rows {
		if r.hidden != nil {
			o.table.hidden[key] = *r.hidden
		} else {
			delete(o.table.hidden, key)
		}
	}
	if o.table.shape.knowsNamespace() {
		return
	}
	for name, p := range o.namespaces {
		if p.ok {
			o.table.namespaces[name] = p.namespace
		} else {
			delete(o.table.namespaces, name)
		}
	}
}
