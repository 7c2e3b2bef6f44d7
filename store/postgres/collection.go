package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchcache"
)

// A collection has the rows of a table that clients see as one Source. It is a [store.Backend]: it
// reads the cache, and writes by SQL.
type collection struct {
	listwatch.Source // the cache
	cache            *watchcache.Cache

	db    *DB
	table *table
	name  string               // empty if the table has no other collections
	spec  store.CollectionSpec // of documents; otherwise zero
}

func newCollection(db *DB, t *table, name string, spec store.CollectionSpec, d listwatch.Description) *collection {
	cache := db.group.Cache(d, watchcache.Options{History: db.options.History, Newest: db.newest, Verbatim: true})
	return &collection{cache, cache, db, t, name, spec}
}

// Table returns a table as a collection that can also be written, by the name that was passed to
// Open. The role needs INSERT, UPDATE and DELETE. APIVersion, Kind, Namespaced, Fields and
// Generation of spec are set to those of the table. If spec.CheckName is nil, all names are
// accepted, and if spec.CheckNamespace is nil, all namespaces. Table panics if there is no such
// table.
//
// A create inserts a row. Columns that the object does not name have their defaults. If the key has
// a default, such as a sequence, the object needs no name. An update changes only the columns whose
// members have changed; a member that is missing becomes NULL. The columns of the key, the
// namespace, the uid and the creation time cannot be updated. An object with a member for which
// there is no column is refused, and so is a value that its column cannot hold.
//
// A column may be both a label and a member of the spec. A write may change either of them, and a
// missing label means no change.
//
// A write is one transaction. It fails with Conflict if the row no longer has the content of the
// object that the writer has read. Resource versions of another server of the same tables are
// accepted, unless they are older than the state with which this server has started, or between two
// states that it knows.
func (db *DB) Table(name string, spec store.CollectionSpec) *store.Collection {
	c := db.collection(name)
	d := c.cache.Describe()
	spec.APIVersion, spec.Kind, spec.Fields = d.APIVersion, d.Kind, d.Fields
	spec.Namespaced, spec.GeneratedNames = c.table.config.Namespace != "", true
	spec.Generation = store.GenerationRule{None: true}
	accept := func(string) error { return nil }
	if spec.CheckName == nil {
		spec.CheckName = accept
	}
	if spec.CheckNamespace == nil {
		spec.CheckNamespace = accept
	}
	before := spec.Admit
	spec.Admit = func(ctx context.Context, old *listwatch.Object, data []byte) (_ []byte, err error) {
		if before != nil {
			if data, err = before(ctx, old, data); err != nil {
				return nil, err
			}
		}
		return data, c.check(ctx, old, data)
	}
	return store.New(spec, c)
}

// Collection adds the collection that spec declares. Its objects are documents: rows of the table
// [Options.Documents], with all rules of a collection. Other servers of the same table show the
// same objects at the same versions.
//
// A row whose document is not an object of this kind, or has another name or namespace than its
// columns, is hidden; see [Trace.RowHidden].
//
// The error has code AlreadyExists if the DB has a collection of the same plural and group,
// Unsupported if there is no table of documents, and Unavailable if the DB has ended. While the DB
// reads its tables again, Collection waits.
func (db *DB) Collection(spec store.CollectionSpec) (*store.Collection, error) {
	spec = spec.WithDefaults()
	name := spec.QualifiedName()
	at := slices.IndexFunc(db.tables, func(t *table) bool { return t.config.document != "" })
	if at < 0 {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Message: "the database was opened without a table of documents",
		}
	}
	t := db.tables[at]
	db.feeding.Lock()
	defer db.feeding.Unlock()
	switch {
	case t.collections[name] != nil:
		return nil, &listwatch.Error{
			Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", name),
		}
	case t.failed:
		return nil, unavailable(context.Background(), fmt.Errorf("%s can no longer be served", t.nameOf(name)))
	}
	c := newCollection(db, t, name, spec, spec.Description(db.epoch))
	var objects []*listwatch.Object
	hidden := map[listwatch.Key]hiddenRow{}
	for key, row := range t.hidden[name] {
		o, err := c.object(t.shape, key, row.values, row.version)
		if err == nil {
			objects = append(objects, o)
		} else {
			hidden[key] = hiddenRow{row.values, row.version, err}
		}
	}
	if err := db.group.Add(c.cache, objects); err != nil {
		return nil, err
	}
	before := t.hidden[name]
	db.mu.Lock()
	t.collections[name], t.hidden[name] = c, hidden
	db.mu.Unlock()
	t.reportHiddenSince(before, name)
	return store.New(spec, c), nil
}

// object returns the object of a row of c, which has the given key, at version v.
func (c *collection) object(
	s *shape, key listwatch.Key, row tuple, v listwatch.Version,
) (o *listwatch.Object, err error) {
	if s.documentAt != absent {
		o, err = c.document(key, row[s.documentAt].text, v)
	} else {
		o, err = s.object(key, row, v)
	}
	if verify := c.table.config.Verify; err == nil && verify != nil {
		err = verify(o)
	}
	return o, err
}

// difference returns the changes from the state of the cache to objects.
func (c *collection) difference(objects []*listwatch.Object) (changes []watchcache.Change) {
	present := make(map[listwatch.Key]bool, len(objects))
	for _, o := range objects {
		present[o.Key] = true
		if old := c.cache.Lookup(o.Key); old == nil || !sameContent(old, o) {
			changes = append(changes, watchcache.Change{Object: o})
		}
	}
	for _, old := range c.cache.Objects() {
		if !present[old.Key] {
			changes = append(changes, watchcache.Change{Key: old.Key, Version: 1})
		}
	}
	return changes
}

// Unwrap returns the cache, so that its description, sizes and unions are found.
func (c *collection) Unwrap() listwatch.Source { return c.cache }

// Get implements [store.Backend].
func (c *collection) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	return c.cache.Get(ctx, key)
}

// UnchangedSince implements the optional method of [store.Backend].
func (c *collection) UnchangedSince(o *listwatch.Object, v listwatch.Version) bool {
	return c.db.group.UnchangedSince(o, v)
}
