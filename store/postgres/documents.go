package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
)

// A collection is the part of a table that is a collection in the table of documents.
type collection struct {
	parent *table // the table of documents
	name   string
	spec   store.CollectionSpec // the zero spec before DB.Collection
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
	all := db.documents
	if all == nil {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Message: "the database was opened without a table of documents",
		}
	}
	db.feeding.Lock()
	defer db.feeding.Unlock()
	c := db.collectionOf(all, name)
	switch {
	case c.cache != nil:
		return nil, &listwatch.Error{
			Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", name),
		}
	case all.failed:
		return nil, unavailable(context.Background(), fmt.Errorf("%s can no longer be served", c))
	}
	declared := &collection{parent: all, name: name, spec: spec}
	var objects []*listwatch.Object
	hidden := hiddenRows{}
	for key, row := range c.hidden {
		o, err := declared.document(all.shape, row.values, row.version)
		if err == nil {
			objects = append(objects, o)
		} else {
			hidden[key] = hiddenRow{row.values, row.version, err}
		}
	}
	description := spec.Description(db.epoch)
	cache := db.newCache(description)
	if err := db.group.Add(cache, objects); err != nil {
		return nil, err
	}
	db.mu.Lock()
	c.collection, c.description, c.cache = declared, description, cache
	db.mu.Unlock()
	db.setHidden(c, hidden)
	return store.New(spec, &writer{Source: cache, db: db, table: c}), nil
}

// collectionOf returns a collection of the table of documents. db.feeding must be held.
func (db *DB) collectionOf(all *table, name string) *table {
	c := all.collections[name]
	if c != nil {
		return c
	}
	c = &table{
		config: all.config, shape: all.shape, trace: all.trace, hidden: hiddenRows{},
		collection: &collection{parent: all, name: name},
	}
	db.mu.Lock()
	all.collections[name] = c
	db.mu.Unlock()
	return c
}

// served returns the tables and collections that have a cache.
func (db *DB) served() (all []*table) {
	for _, t := range db.tables {
		if t.cache != nil {
			all = append(all, t)
		}
		for _, c := range t.collections {
			if c.cache != nil {
				all = append(all, c)
			}
		}
	}
	return all
}

// createDocuments creates the table of documents if it is missing.
func createDocuments(ctx context.Context, s session, name string) error {
	statement, err := documentsStatement(ctx, s, name)
	if err != nil || statement == "" {
		return err
	}
	return s.change(ctx, statement)
}

// documentsStatement returns the statement that creates the table of documents. It is empty if the
// table exists.
func documentsStatement(ctx context.Context, s session, name string) (string, error) {
	row, err := s.row(ctx, "SELECT pg_catalog.to_regclass(%s) IS NULL", literalOf(name))
	if err != nil || row[0] != "t" {
		return "", err
	}
	return fmt.Sprintf(`CREATE TABLE %s (collection text COLLATE "C", namespace text COLLATE "C",
	name text COLLATE "C", doc json NOT NULL, PRIMARY KEY (collection, namespace, name))`, name), nil
}

// errNoDocuments is the error of a table that exists and has other columns than a table of
// documents.
var errNoDocuments = errors.New(
	"it is not a table of documents, whose primary key is (collection, namespace, name) and which has a json column doc")

// newDocuments completes s for the table of documents.
func newDocuments(s *shape) (*shape, error) {
	at := func(name string) int {
		return slices.IndexFunc(s.columns, func(c column) bool { return c.name == name })
	}
	s.collectionAt, s.namespaceAt, s.docAt = at("collection"), at("namespace"), at("doc")
	s.nameFrom = []int{at("name")}
	want := []int{s.collectionAt, s.namespaceAt, s.nameFrom[0]}
	if !slices.Equal(s.identity, want) || s.docAt == absent || s.columns[s.docAt].kind.form != asJSON {
		return nil, fmt.Errorf("table %s: %w", s.name, errNoDocuments)
	}
	return s, nil
}

// document returns the object of a row of the table of documents.
func (c *collection) document(s *shape, row tuple, v listwatch.Version) (*listwatch.Object, error) {
	if c.spec.Kind == "" {
		return nil, errUndeclared
	}
	if key := s.keyOf(row); (key.Namespace != "") != c.spec.Namespaced {
		return nil, fmt.Errorf("its namespace is %q, but Namespaced is %t", key.Namespace, c.spec.Namespaced)
	}
	return restore(c.spec, s, row, v)
}

// restore returns the object of a row of the table of documents. If spec has no Kind, any kind is
// accepted.
func restore(spec store.CollectionSpec, s *shape, row tuple, v listwatch.Version) (*listwatch.Object, error) {
	key := s.keyOf(row)
	d, err := spec.Restore(key, row[s.docAt].text)
	if err != nil {
		return nil, err
	}
	o := d.Seal(v)
	for member, want := range map[string]string{"name": key.Name, "namespace": key.Namespace} {
		// A missing member is empty.
		if got, _ := rawjson.String(rawjson.Lookup(o.Data, "metadata", member)); got != want {
			return nil, fmt.Errorf("metadata.%s of its document is %q, want %q", member, got, want)
		}
	}
	return o, nil
}

// assign returns the values that a write of a document gives to the columns.
func (c *collection) assign(s *shape, change store.Change) []assignment {
	doc := assignment{at: s.docAt, text: change.New.Unversioned().Data}
	if change.Old != nil {
		return []assignment{doc}
	}
	return []assignment{
		{at: s.collectionAt, text: []byte(c.name)},
		{at: s.namespaceAt, text: []byte(change.Key.Namespace)},
		{at: s.nameFrom[0], text: []byte(change.Key.Name)},
		doc,
	}
}
