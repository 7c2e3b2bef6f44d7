package informer

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"github.com/listwatch/listwatch"
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
	tree   *btree.BTreeG[posting[T]]
}

// A posting is one entry of an index: item is stored under value. A value that is a
// substring of the object takes no extra memory.
type posting[T any] struct {
	value string
	item  *Item[T]
}

func newItems[T any]() *btree.BTreeG[*Item[T]] {
	return btree.NewBTreeGOptions(func(a, b *Item[T]) bool { return a.Key.Compare(b.Key) < 0 }, btree.Options{NoLocks: true})
}

// newPostings uses half of the default degree of the B-tree, because a posting takes three
// words and an item pointer only one.
func newPostings[T any]() *btree.BTreeG[posting[T]] {
	return btree.NewBTreeGOptions(func(a, b posting[T]) bool {
		c := strings.Compare(a.value, b.value)
		return c < 0 || c == 0 && a.item.Key.Compare(b.item.Key) < 0
	}, btree.Options{NoLocks: true, Degree: 16})
}

// appendValues appends the sorted values of an item to dst. It copies them, because the
// index function may reuse its slice. Duplicates become one posting in the tree. A panic of
// the index function becomes an error.
func (x *index[T]) appendValues(dst []string, i *Item[T]) (values []string, err error) {
	if i == nil {
		return dst, nil
	}
	defer func() {
		if r := recover(); r != nil {
			cause, _ := r.(error)
			err = &listwatch.Error{
				Code: listwatch.Invalid, Op: "index " + quote(x.name), Err: cause,
				Message: fmt.Sprintf("the index function panicked for %s at version %s: %v", i.Key, i.Version, r),
			}
		}
	}()
	values = append(dst, x.values(i)...)
	slices.Sort(values[len(dst):])
	return values, nil
}

// replace removes the item before, which is indexed under the values in old, and adds the
// item now under the given values. Either item may be nil.
func (x *index[T]) replace(before *Item[T], old []string, now *Item[T], values []string) {
	for _, v := range old {
		if _, stays := slices.BinarySearch(values, v); !stays {
			x.tree.Delete(posting[T]{v, before})
		}
	}
	for _, v := range values {
		// Replace a posting with an equal value as well: the old value may be a substring of the
		// old object, and would keep that object in memory.
		x.tree.Set(posting[T]{v, now})
	}
}

// build fills a new tree from items.
func (x *index[T]) build(items *btree.BTreeG[*Item[T]]) (err error) {
	x.tree = newPostings[T]()
	if items == nil {
		return nil
	}
	var values []string
	items.Scan(func(i *Item[T]) bool {
		values, err = x.appendValues(values[:0], i)
		x.replace(nil, nil, i, values)
		return err == nil
	})
	x.tree = compacted(x.tree)
	return err
}

// scan yields the items under value in key order.
func (x *index[T]) scan(value string, probes *probes[T], yield func(*Item[T]) bool) {
	p := probes.take(listwatch.Key{})
	defer probes.put(p)
	x.tree.Ascend(posting[T]{value, p}, func(e posting[T]) bool { return e.value == value && yield(e.item) })
}

// allValues returns the distinct values, sorted.
func (x *index[T]) allValues() []string {
	var values []string
	x.tree.Scan(func(e posting[T]) bool {
		if len(values) == 0 || values[len(values)-1] != e.value {
			values = append(values, e.value)
		}
		return true
	})
	return values
}

// probes is a pool of items that hold only a key to search for. It avoids allocating an
// item per search, which is expensive if T is large.
type probes[T any] struct{ pool sync.Pool }

func (p *probes[T]) take(key listwatch.Key) *Item[T] {
	i, ok := p.pool.Get().(*Item[T])
	if !ok {
		i = new(Item[T])
	}
	i.Key = key
	return i
}

func (p *probes[T]) put(i *Item[T]) {
	i.Key = listwatch.Key{}
	p.pool.Put(i)
}

// A hashIndex finds items by the hash of their key. A lookup takes a few hundred
// nanoseconds. In a tree of 100,000 items it takes more than a thousand, because the inner
// nodes are not in the CPU cache. A map by key would take twice the memory. If two keys
// have the same hash, the hashIndex holds only one of them; see complete.
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

func (l *hashIndex[T]) hashOf(key listwatch.Key) uint64 {
	if l.hash != nil {
		return l.hash(key)
	}
	return maphash.Comparable(l.seed, key)
}

// get returns the item of key. sure is false if the item may exist although it was not
// found.
func (l *hashIndex[T]) get(key listwatch.Key) (item *Item[T], sure bool) {
	if len(l.items) == 0 {
		return nil, l.complete
	}
	if i := l.items[l.hashOf(key)]; i != nil && i.Key == key {
		return i, true
	}
	return nil, l.complete
}

func (l *hashIndex[T]) put(item *Item[T]) {
	h := l.hashOf(item.Key)
	if i := l.items[h]; i != nil && i.Key != item.Key {
		l.complete = false
		return
	}
	l.items[h] = item
}

func (l *hashIndex[T]) remove(key listwatch.Key) {
	h := l.hashOf(key)
	if i := l.items[h]; i != nil && i.Key == key {
		delete(l.items, h)
	}
}
