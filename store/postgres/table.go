package postgres

import (
	"cmp"
	"errors"
	"sync/atomic"

	"github.com/listwatch/listwatch"
)

// A table is a table that is followed. Each of its rows belongs to a collection: the only one of
// the table or, in the table of documents, the one that a column names. Only the goroutine that
// follows the log changes a table, while it holds DB.feeding.
type table struct {
	config     Table
	trace      *Trace
	shape      *shape            // nil before the first load
	namespaces map[string]string // by object name; unused if the identity contains the namespace
	reloads    reloads
	truncated  bool // since the last check of the schema
	failed     bool // the table is no longer served

	// Guarded by DB.mu, and changed only while DB.feeding is held.
	collections map[string]*collection // by name; those that were declared
	hidden      hiddenRows

	written atomic.Pointer[shape] // as it was when a write last read it, or nil
}

func newTable(config Table, trace *Trace) *table {
	return &table{
		config: config, trace: trace, namespaces: map[string]string{}, collections: map[string]*collection{},
		hidden: hiddenRows{},
	}
}

// A place identifies a row by its collection and by the key that its object has.
type place struct {
	collection string
	listwatch.Key
}

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.collection, other.collection), p.Key.Compare(other.Key))
}

// nameOf returns the name of the table and, if it has several, of a collection.
func (t *table) nameOf(collection string) string {
	if collection == "" {
		return t.config.Name
	}
	return t.config.Name + ", collection " + collection
}

// lookup returns the object at p, or nil if there is none.
func (t *table) lookup(p place) *listwatch.Object {
	c := t.collections[p.collection]
	if c == nil {
		return nil
	}
	return c.cache.Lookup(p.Key)
}

// object returns the object of the row at p, at version v.
func (t *table) object(s *shape, p place, row tuple, v listwatch.Version) (*listwatch.Object, error) {
	c := t.collections[p.collection]
	if c == nil {
		return nil, errUndeclared
	}
	return c.object(s, p.Key, row, v)
}

// fail ends the table with an error. The other tables are still served. Clients get no text from
// PostgreSQL.
func (t *table) fail(reason error) {
	if t.failed {
		return
	}
	t.failed = true
	t.trace.TableFailed(t.config.Name, reason)
	for _, c := range t.collections {
		c.cache.Fail(&listwatch.Error{
			Code: listwatch.Unavailable, Op: "postgres",
			Message: "the " + c.cache.Describe().Kind + " objects can no longer be served; the log of the server has the reason",
		})
	}
}

// hiddenRows are the rows of a table that clients do not see, by collection and key. They are the
// rows that are not objects, and all rows of collections that are not declared yet.
type hiddenRows map[string]map[listwatch.Key]hiddenRow

type hiddenRow struct {
	// values are kept because an update does not send the large values that it leaves as they are.
	values  tuple
	version listwatch.Version
	reason  error // errUndeclared, or why the row is not an object
}

var errUndeclared = errors.New("its collection is not declared")

// set sets the row at p, or removes it if row is nil.
func (h hiddenRows) set(p place, row *hiddenRow) {
	if row == nil {
		delete(h[p.collection], p.Key)
		return
	}
	if h[p.collection] == nil {
		h[p.collection] = map[listwatch.Key]hiddenRow{}
	}
	h[p.collection][p.Key] = *row
}

// maxHiddenReports is the number of rows that are reported when a collection was read.
const maxHiddenReports = 10

// reportHiddenSince reports the hidden rows of a collection that were not in before.
func (t *table) reportHiddenSince(before map[listwatch.Key]hiddenRow, collection string) {
	reports := 0
	for key, row := range t.hidden[collection] {
		if old, ok := before[key]; ok && old.reason != errUndeclared || reports == maxHiddenReports {
			continue
		}
		reports++
		t.reportHidden(place{collection, key}, row)
	}
}

func (t *table) reportHidden(p place, row hiddenRow) {
	if row.reason != errUndeclared {
		t.trace.RowHidden(t.nameOf(p.collection), p.String(), row.reason)
	}
}
