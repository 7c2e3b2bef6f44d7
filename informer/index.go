package informer

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/ordered"
)

// An IndexFunc returns the values under which an index holds an item. Duplicate values
// count once, and the result may be empty. The function must depend only on the item, must
// not modify it, and must not write to the store.
type IndexFunc[T any] func(item *Item[T]) []string

// An index finds items by value. Its tree is copied on write together with the tree of
// items, so that a snapshot shows both at the same moment.
type index[T any] struct {
	name   string
	values IndexFunc[T]
	tree   ordered.Set[posting]
}

// A posting is one entry of an index: item is stored under value. A value that is a substring of a
// string in the object takes no extra memory.
type posting struct {
	value string
	item  keyed // an *Item[T]
}

// keyed is an item of any type. The sets hold it instead of *Item[T], so that the B-tree is not
// compiled again for each T.
type keyed interface{ key() *listwatch.Key }

func (i *Item[T]) key() *listwatch.Key { return &i.Key }

//go:noinline // see ordered.New
func newItems() ordered.Set[keyed] {
	return ordered.New(32, func(a, b keyed) bool { return a.key().Compare(*b.key()) < 0 })
}

//go:noinline // see ordered.New
func newPostings() ordered.Set[posting] {
	return ordered.New(16, func(a, b posting) bool {
		c := strings.Compare(a.value, b.value)
		return c < 0 || c == 0 && a.item.key().Compare(*b.item.key()) < 0
	})
}

// appendValues appends the sorted values of an item to dst. It copies them, because the
// index function may reuse its slice. Duplicates become one posting in the tree. A panic of
// the index function becomes an error.
func (i *index[T]) appendValues(dst []string, item *Item[T]) (values []string, err error) {
	if item == nil {
		return dst, nil
	}
	defer func() {
		if r := recover(); r != nil {
			cause, _ := r.(error)
			err = &listwatch.Error{
				Code: listwatch.Invalid, Op: "index " + strconv.Quote(i.name), Err: cause,
				Message: fmt.Sprintf("the index function panicked for %s at version %s: %v", item.Key, item.Version, r),
			}
		}
	}()
	values = append(dst, i.values(item)...)
	slices.Sort(values[len(dst):])
	return values, nil
}

// replace changes the postings of an item after a write. before is the replaced item, and old holds
// its index values. now is the new item, and values holds its index values. Either item may be nil.
func (i *index[T]) replace(before *Item[T], old []string, now *Item[T], values []string) {
	for _, v := range old {
		if _, stays := slices.BinarySearch(values, v); !stays {
			i.tree.Delete(posting{v, before})
		}
	}
	for _, v := range values {
		// Replace a posting with an equal value as well: the old value may be a substring of the
		// old object, and would keep that object in memory.
		i.tree.Put(posting{v, now})
	}
}

// build fills a new tree from items.
func (i *index[T]) build(items ordered.Set[keyed]) (err error) {
	i.tree = newPostings()
	if items == nil {
		return nil
	}
	var values []string
	items.Scan(func(k keyed) bool {
		item := k.(*Item[T])
		values, err = i.appendValues(values[:0], item)
		i.replace(nil, nil, item, values)
		return err == nil
	})
	i.tree = i.tree.Compacted()
	return err
}

// scan yields the items that the index holds under the given value, in key order.
func (i *index[T]) scan(value string, yield func(*Item[T]) bool) {
	p := newSearchKey(listwatch.Key{})
	defer p.release()
	i.tree.Ascend(posting{value, p}, func(e posting) bool { return e.value == value && yield(e.item.(*Item[T])) })
}

// allValues returns the distinct values, sorted.
func (i *index[T]) allValues() []string {
	var values []string
	i.tree.Scan(func(e posting) bool {
		if len(values) == 0 || values[len(values)-1] != e.value {
			values = append(values, e.value)
		}
		return true
	})
	return values
}

// A searchKey is a key to search for in an index.
type searchKey struct{ searched listwatch.Key }

var searchKeys = sync.Pool{New: func() any { return new(searchKey) }}

// newSearchKey returns a searchKey that the caller must release.
func newSearchKey(key listwatch.Key) *searchKey {
	p := searchKeys.Get().(*searchKey)
	p.searched = key
	return p
}

func (s *searchKey) key() *listwatch.Key { return &s.searched }

func (s *searchKey) release() {
	s.searched = listwatch.Key{}
	searchKeys.Put(s)
}

// A hashIndex finds items by the hash of their key. A lookup takes a few hundred nanoseconds. A
// lookup in a tree of 100,000 items takes more than a thousand, because the inner nodes are not
// in the CPU cache. A map by key would take twice the memory. If two keys have the same hash, the
// hashIndex holds only one of the items; see complete.
type hashIndex[T any] struct {
	items map[uint64]*Item[T]
	seed  maphash.Seed
	// complete is true while the index holds every item, so that a miss means that the item
	// does not exist. The first hash collision clears it.
	complete bool
	// hash replaces the hash function in tests. If nil, maphash is used.
	hash func(listwatch.Key) uint64
}

func newHashIndex[T any](n int) hashIndex[T] {
	return hashIndex[T]{items: make(map[uint64]*Item[T], n), seed: maphash.MakeSeed(), complete: true}
}

func (h *hashIndex[T]) hashOf(key listwatch.Key) uint64 {
	if h.hash != nil {
		return h.hash(key)
	}
	return maphash.Comparable(h.seed, key)
}

// get returns the item of key. sure is false if the item may exist although it was not
// found.
func (h *hashIndex[T]) get(key listwatch.Key) (item *Item[T], sure bool) {
	if len(h.items) == 0 {
		return nil, h.complete
	}
	if i := h.items[h.hashOf(key)]; i != nil && i.Key == key {
		return i, true
	}
	return nil, h.complete
}

func (h *hashIndex[T]) put(item *Item[T]) {
	sum := h.hashOf(item.Key)
	if i := h.items[sum]; i != nil && i.Key != item.Key {
		h.complete = false
		return
	}
	h.items[sum] = item
}

func (h *hashIndex[T]) remove(key listwatch.Key) {
	sum := h.hashOf(key)
	if i := h.items[sum]; i != nil && i.Key == key {
		delete(h.items, sum)
	}
}
