package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchcache"
)

// A collection is the part of a table that is a collection in the table of documents.
type collection struct {
	parent *table // the table of documents
	name   string
	spec   store.CollectionSpec
	// declared is true after DB.Collection. Until then, the cache is not a part of the group, and
	// no client reads it.
	declared bool
}

// Collection adds the collection that spec declares. Its objects are documents: rows of the table
// [Options.Documents], with all rules of a collection. Other servers of the same table show the
// same objects at the same versions.
//
// The error has code AlreadyExists if the DB has a collection of the same plural and group,
// Unsupported if there is no table of documents, Corrupt if a document is not an object of this
// kind, and Unavailable if the DB has ended. While the DB reads its tables again, Collection waits.
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
	case c.declared:
		return nil, &listwatch.Error{
			Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", name),
		}
	case c.failed:
		return nil, unavailable(context.Background(), fmt.Errorf("%s can no longer be served", c))
	}
	var objects []*listwatch.Object
	for _, o := range c.cache.Objects() {
		d, err := spec.Restore(o.Key, o.Data)
		if err != nil {
			return nil, &listwatch.Error{
				Code: listwatch.Corrupt, Op: name, Message: fmt.Sprintf("document %q", o.Key), Err: err,
			}
		}
		objects = append(objects, d.Seal(o.Version))
	}
	description := spec.Description(db.epoch)
	cache := db.newCache(description)
	if err := db.group.Add(cache, objects); err != nil {
		return nil, err
	}
	db.mu.Lock()
	c.cache, c.description, c.spec, c.declared = cache, description, spec, true
	db.mu.Unlock()
	return store.New(spec, &writer{Source: cache, db: db, table: c}), nil
}

// collectionOf returns a collection of the table of documents. db.feeding must be held.
func (db *DB) collectionOf(all *table, name string) *table {
	c := all.collections[name]
	if c != nil {
		return c
	}
	c = &table{
		config: all.config, shape: all.shape, trace: all.trace, failed: all.failed,
		collection: &collection{parent: all, name: name},
		// Nobody watches it, so it needs no history.
		cache: watchcache.New(listwatch.Description{}, watchcache.Options{
			History: listwatch.Retention{Bytes: 1}, Verbatim: true,
		}),
	}
	_ = c.cache.Replace(nil, max(db.group.Version(), 1)) // cannot fail without objects
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
		all = slices.AppendSeq(all, maps.Values(t.collections))
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
	key := s.keyOf(row)
	d, err := c.spec.Restore(key, row[s.docAt].text)
	if err != nil {
		return nil, fmt.Errorf("document %q: %w", key, err)
	}
	return d.Seal(v), nil
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

// isUndeclared reports whether t is a collection that no client reads yet.
func (t *table) isUndeclared() bool { return t.collection != nil && !t.declared }
