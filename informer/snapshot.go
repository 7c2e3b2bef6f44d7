package informer

import (
	"iter"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/ordered"
)

// A Snapshot is the state of the local store at one moment, with its objects and indexes. It is
// immutable and safe for concurrent use. It takes memory only for the parts that have changed
// since.
type Snapshot[T any] struct {
	version  listwatch.Version
	contents contents[T]
}

// contents holds the objects by key and their indexes. The contents of a Snapshot never change,
// because localStore copies on write.
type contents[T any] struct {
	items   ordered.Set[keyed] // holds *Item[T]; nil means empty
	indexes []index[T]
}

// Version returns the version up to which the snapshot holds everything. Individual objects
// may be newer.
func (s *Snapshot[T]) Version() listwatch.Version { return s.version }

// Len returns the number of objects.
func (s *Snapshot[T]) Len() int { return s.contents.len() }

// Get returns the object of a key and whether it exists.
func (s *Snapshot[T]) Get(key listwatch.Key) (value T, ok bool) {
	if i, ok := s.contents.get(key); ok {
		return i.Value, true
	}
	return value, false
}

// Items returns an iterator over the items in key order.
func (s *Snapshot[T]) Items() iter.Seq[*Item[T]] {
	return func(yield func(*Item[T]) bool) {
		if s.contents.items != nil {
			s.contents.items.Scan(func(i keyed) bool { return yield(i.(*Item[T])) })
		}
	}
}

// All returns an iterator over the keys and objects in key order.
func (s *Snapshot[T]) All() iter.Seq2[listwatch.Key, T] {
	return func(yield func(listwatch.Key, T) bool) {
		for i := range s.Items() {
			if !yield(i.Key, i.Value) {
				return
			}
		}
	}
}

// Select returns an iterator over the objects that q selects, in key order. See
// [Indexer.List] for the queries that it supports.
func (s *Snapshot[T]) Select(q listwatch.Query) (iter.Seq2[listwatch.Key, T], error) {
	sel, err := newListFilter(q)
	if err != nil {
		return nil, err
	}
	return pairs(func(yield func(*Item[T]) bool) { s.contents.scan(sel, yield) }), nil
}

// ByIndex returns an iterator over the objects that the named index holds under the given value,
// in key order. For an unknown index, the error has code [listwatch.NotFound].
func (s *Snapshot[T]) ByIndex(name, value string) (iter.Seq2[listwatch.Key, T], error) {
	x, err := s.contents.index(name)
	if err != nil {
		return nil, err
	}
	return pairs(func(yield func(*Item[T]) bool) { x.scan(value, yield) }), nil
}

// IndexValues returns the values of an index, sorted. For an unknown index, the error has code
// [listwatch.NotFound].
func (s *Snapshot[T]) IndexValues(name string) ([]string, error) {
	x, err := s.contents.index(name)
	if err != nil {
		return nil, err
	}
	return x.allValues(), nil
}

func pairs[T any](items iter.Seq[*Item[T]]) iter.Seq2[listwatch.Key, T] {
	return func(yield func(listwatch.Key, T) bool) {
		items(func(i *Item[T]) bool { return yield(i.Key, i.Value) })
	}
}

func (c *contents[T]) len() int {
	if c.items == nil {
		return 0
	}
	return c.items.Len()
}

func (c *contents[T]) get(key listwatch.Key) (*Item[T], bool) {
	if c.items == nil {
		return nil, false
	}
	p := newSearchKey(key)
	defer p.release()
	found, ok := c.items.Get(p)
	if !ok {
		return nil, false
	}
	return found.(*Item[T]), true
}

// scan yields the items that match sel, in key order, until yield returns false.
func (c *contents[T]) scan(sel listFilter, yield func(*Item[T]) bool) {
	if c.items == nil {
		return
	}
	visit := func(i *Item[T]) bool {
		matches := sel.matchesKey(i.Key) && (sel.labels.Empty() || sel.labels.Matches(i.Labels()))
		return !matches || yield(i)
	}
	switch {
	case sel.matchesOneKey():
		if i, ok := c.get(listwatch.Key{Namespace: *sel.namespace, Name: *sel.name}); ok {
			visit(i)
		}
		return
	case sel.namespace == nil:
		c.items.Scan(func(k keyed) bool { return visit(k.(*Item[T])) })
		return
	}
	p := newSearchKey(listwatch.Key{Namespace: *sel.namespace})
	defer p.release()
	c.items.Ascend(p, func(k keyed) bool {
		i := k.(*Item[T])
		return i.Key.Namespace == *sel.namespace && visit(i)
	})
}

func (c *contents[T]) index(name string) (*index[T], error) {
	names := make([]string, len(c.indexes))
	for i := range c.indexes {
		if c.indexes[i].name == name {
			return &c.indexes[i], nil
		}
		names[i] = c.indexes[i].name
	}
	known := "no indexes exist; add one with AddIndex"
	if len(names) > 0 {
		known = "existing indexes: " + strings.Join(names, ", ")
	}
	return nil, &listwatch.Error{Code: listwatch.NotFound, Message: "no index " + strconv.Quote(name) + "; " + known}
}

// A listFilter selects objects in memory.
type listFilter struct {
	// A nil namespace matches every namespace, and a nil name matches every name.
	namespace, name *string
	labels          listwatch.LabelSelector
	fields          listwatch.FieldSelector
}

// newListFilter converts a query. For a query that cannot be answered from memory it
// returns an error that names an alternative.
func newListFilter(q listwatch.Query) (listFilter, error) {
	s := listFilter{labels: q.Labels, fields: q.Fields}
	if err := checkQuery(q); err != nil {
		return s, err
	}
	s.namespace = scope(q.Namespace, q.Fields, listwatch.FieldNamespace)
	s.name = scope(q.Name, q.Fields, listwatch.FieldName)
	return s, nil
}

func checkQuery(q listwatch.Query) error {
	refuse := func(message string) error {
		return &listwatch.Error{Code: listwatch.Invalid, Op: "list the local store", Message: message}
	}
	if err := q.Fields.Check(nil); err != nil {
		return &listwatch.Error{
			Code: listwatch.Invalid, Op: "list the local store", Err: err,
			Message: "fields other than metadata.name and metadata.namespace need an index: add one and use ByIndex",
		}
	}
	switch {
	case !q.Projection.Empty():
		return refuse("projections are not supported; set the Projection of Informer.Selection")
	case q.Start == listwatch.StartAt || q.Version != 0 || q.Match != listwatch.MatchNotOlderThan:
		return refuse("version " + q.Version.String() + ": versions are not supported; use WaitForVersion before the list")
	case q.Limit > 0:
		return refuse("limit " + strconv.Itoa(q.Limit) + ": limits are not supported; iterate over a Snapshot and stop early")
	case q.Continue != "":
		return refuse("continue tokens are not supported; keep a Snapshot, which does not change")
	case q.InitialEvents != listwatch.InitialEventsUnset || q.Bookmarks:
		return refuse("initial events and bookmarks are for watches; register a handler instead")
	}
	return nil
}

// scope returns the only value that a query allows at path, or nil if the query does not require
// one value. member is the Namespace or Name of the query, and fields is its field selector. If
// these two contradict each other, scope returns the member, and matchesKey then also applies the
// field selector.
func scope(member string, fields listwatch.FieldSelector, path string) *string {
	if member != "" {
		return &member
	}
	if value, ok := fields.Equality(path); ok {
		return &value
	}
	return nil
}

// matchesOneKey reports whether at most one key can match.
func (l *listFilter) matchesOneKey() bool { return l.namespace != nil && l.name != nil }

func (l *listFilter) matchesAll() bool {
	return l.namespace == nil && l.name == nil && l.labels.Empty() && l.fields.Empty()
}

func (l *listFilter) matchesKey(k listwatch.Key) bool {
	return (l.namespace == nil || k.Namespace == *l.namespace) && (l.name == nil || k.Name == *l.name) &&
		(l.fields.Empty() || l.fields.Matches(&listwatch.Object{Key: k}))
}
