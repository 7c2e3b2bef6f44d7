package informer

import (
	"iter"
	"strconv"
	"strings"

	"github.com/tidwall/btree"

	"github.com/listwatch/listwatch"
)

// A Snapshot is the local store as it was at one moment, objects and indexes. It is immutable, safe for concurrent use, and costs
// memory only for what has changed since.
type Snapshot[T any] struct {
	version  listwatch.Version
	contents contents[T]
}

// A view is objects by key and their indexes. What is in a Snapshot is never changed: the Indexer copies on write.
type contents[T any] struct {
	items   *btree.BTreeG[*Item[T]] // nil: empty
	indexes []index[T]
	probes  *probes[T]
}

// Version returns the one up to which everything is in the snapshot. Single objects may be newer.
func (s *Snapshot[T]) Version() listwatch.Version { return s.version }

// Len returns the number of objects.
func (s *Snapshot[T]) Len() int { return s.contents.len() }

// Get returns the object of a key.
func (s *Snapshot[T]) Get(key listwatch.Key) (value T, ok bool) {
	if i, ok := s.contents.get(key); ok {
		return i.Value, true
	}
	return value, false
}

// Items returns the items in key order.
func (s *Snapshot[T]) Items() iter.Seq[*Item[T]] {
	return func(yield func(*Item[T]) bool) {
		if s.contents.items != nil {
			s.contents.items.Scan(yield)
		}
	}
}

// All returns the objects in key order.
func (s *Snapshot[T]) All() iter.Seq2[listwatch.Key, T] {
	return func(yield func(listwatch.Key, T) bool) {
		for i := range s.Items() {
			if !yield(i.Key, i.Value) {
				return
			}
		}
	}
}

// Select returns the objects that q selects, in key order. What q may say and what not: see [Indexer.List].
func (s *Snapshot[T]) Select(q listwatch.Query) (iter.Seq2[listwatch.Key, T], error) {
	sel, err := newListFilter(q)
	if err != nil {
		return nil, err
	}
	return pairs(func(yield func(*Item[T]) bool) { s.contents.scan(sel, yield) }), nil
}

// ByIndex returns the objects that an index has under value, in key order. An index that doesn't exist is an error of code
// [listwatch.NotFound].
func (s *Snapshot[T]) ByIndex(name, value string) (iter.Seq2[listwatch.Key, T], error) {
	x, err := s.contents.index(name)
	if err != nil {
		return nil, err
	}
	return pairs(func(yield func(*Item[T]) bool) { x.scan(value, s.contents.probes, yield) }), nil
}

// IndexValues returns the values of an index, sorted. An index that doesn't exist is an error of code [listwatch.NotFound].
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

func (v *contents[T]) len() int {
	if v.items == nil {
		return 0
	}
	return v.items.Len()
}

func (v *contents[T]) get(key listwatch.Key) (*Item[T], bool) {
	if v.items == nil {
		return nil, false
	}
	p := v.probes.take(key)
	defer v.probes.put(p)
	return v.items.Get(p)
}

// scan yields what sel selects, in key order, until yield returns false.
func (v *contents[T]) scan(sel listFilter, yield func(*Item[T]) bool) {
	if v.items == nil {
		return
	}
	match := func(i *Item[T]) bool { return sel.labels.Empty() || sel.labels.Matches(i.Labels()) }
	switch {
	case sel.matchesOneKey():
		if i, ok := v.get(listwatch.Key{Namespace: *sel.namespace, Name: *sel.name}); ok && sel.matchesKey(i.Key) && match(i) {
			yield(i)
		}
		return
	case sel.namespace == nil:
		v.items.Scan(func(i *Item[T]) bool { return !sel.matchesKey(i.Key) || !match(i) || yield(i) })
		return
	}
	p := v.probes.take(listwatch.Key{Namespace: *sel.namespace})
	defer v.probes.put(p)
	v.items.Ascend(p, func(i *Item[T]) bool {
		return i.Key.Namespace == *sel.namespace && (!sel.matchesKey(i.Key) || !match(i) || yield(i))
	})
}

func (v *contents[T]) index(name string) (*index[T], error) {
	names := make([]string, len(v.indexes))
	for i := range v.indexes {
		if v.indexes[i].name == name {
			return &v.indexes[i], nil
		}
		names[i] = v.indexes[i].name
	}
	known := "there are none: see AddIndex"
	if len(names) > 0 {
		known = "there are: " + strings.Join(names, ", ")
	}
	return nil, &listwatch.Error{Code: listwatch.NotFound, Message: "no index " + quote(name) + "; " + known}
}

// A selection is what a Query asks of memory.
type listFilter struct {
	namespace, name *string // nil: all
	labels          listwatch.LabelSelector
	fields          listwatch.FieldSelector
}

// newSelection refuses what memory can't answer, and says who can.
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
		return &listwatch.Error{Code: listwatch.Invalid, Op: "list from memory", Message: message}
	}
	if err := q.Fields.Check(nil); err != nil {
		return &listwatch.Error{
			Code: listwatch.Invalid, Op: "list from memory", Err: err,
			Message: "memory has no other fields: add an index and ask ByIndex",
		}
	}
	switch {
	case q.Start == listwatch.At || q.Version != 0 || q.Match != listwatch.NotOlderThan:
		return refuse("a version (" + q.Version.String() + ") can't be asked for: wait for it with WaitForVersion, then list")
	case q.Limit > 0:
		return refuse("a limit (" + strconv.Itoa(q.Limit) + ") is for lists over the wire: take a Snapshot and stop where it is enough")
	case q.Continue != "":
		return refuse("a continue token is for lists over the wire: take a Snapshot, which stays as it is")
	case q.InitialEvents != listwatch.Unset || q.Bookmarks:
		return refuse("initial events and bookmarks belong to a watch: follow the informer instead")
	}
	return nil
}

// scope returns the one value that q allows; nil where it allows all. Where a member and a field say different things, the field is left for
// matchesKey to refuse.
func scope(member string, fields listwatch.FieldSelector, path string) *string {
	if member != "" {
		return &member
	}
	if value, ok := fields.Equality(path); ok {
		return &value
	}
	return nil
}

// isOne reports whether at most one key can match.
func (s *listFilter) matchesOneKey() bool { return s.namespace != nil && s.name != nil }

func (s *listFilter) matchesAll() bool {
	return s.namespace == nil && s.name == nil && s.labels.Empty() && s.fields.Empty()
}

func (s *listFilter) matchesKey(k listwatch.Key) bool {
	return (s.namespace == nil || k.Namespace == *s.namespace) && (s.name == nil || k.Name == *s.name) &&
		(s.fields.Empty() || s.fields.Matches(&listwatch.Object{Key: k}))
}

func quote(s string) string { return strconv.Quote(s) }
