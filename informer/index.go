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

// An IndexFunc returns the values under which an item is found. Duplicates count once; none is fine. It must depend on nothing but the item,
// must not change it, and must not write to the store.
type IndexFunc[T any] func(item *Item[T]) []string

// An index finds items by a value. It is a tree beside that of the items and copied as that is, so a snapshot shows both at one moment.
type index[T any] struct {
	name   string
	values IndexFunc[T]
	tree   *btree.BTreeG[posting[T]]
}

// A posting says that an item is found under value. Values that are parts of the object cost nothing beside it.
type posting[T any] struct {
	value string
	item  *Item[T]
}

func newItems[T any]() *btree.BTreeG[*Item[T]] {
	return btree.NewBTreeGOptions(func(a, b *Item[T]) bool { return a.Key.Compare(b.Key) < 0 }, btree.Options{NoLocks: true})
}

// Postings are three words, so that nodes of half the degree are of the same size.
func newPostings[T any]() *btree.BTreeG[posting[T]] {
	return btree.NewBTreeGOptions(func(a, b posting[T]) bool {
		c := strings.Compare(a.value, b.value)
		return c < 0 || c == 0 && a.item.Key.Compare(b.item.Key) < 0
	}, btree.Options{NoLocks: true, Degree: 16})
}

// find appends the values of an item, sorted, to dst: what the function returns is its own, and it may use it again. What comes twice is one
// posting in the tree. A panic becomes an error.
func (x *index[T]) appendValues(dst []string, i *Item[T]) (values []string, err error) {
	if i == nil {
		return dst, nil
	}
	defer func() {
		if r := recover(); r != nil {
			cause, _ := r.(error)
			err = &listwatch.Error{
				Code: listwatch.Invalid, Op: "index " + quote(x.name), Err: cause,
				Message: fmt.Sprintf("its function panicked on %s at version %s: %v", i.Key, i.Version, r),
			}
		}
	}()
	values = append(dst, x.values(i)...)
	slices.Sort(values[len(dst):])
	return values, nil
}

// replace puts now, found under values, where before was, found under old. Either item may be nil.
func (x *index[T]) replace(before *Item[T], old []string, now *Item[T], values []string) {
	for _, v := range old {
		if _, stays := slices.BinarySearch(values, v); !stays {
			x.tree.Delete(posting[T]{v, before})
		}
	}
	for _, v := range values {
		// A value that was there before goes too, with the object that it is a part of.
		x.tree.Set(posting[T]{v, now})
	}
}

// fill builds the tree from items.
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

// scan yields the items under value, in key order.
func (x *index[T]) scan(value string, probes *probes[T], yield func(*Item[T]) bool) {
	p := probes.take(listwatch.Key{})
	defer probes.put(p)
	x.tree.Ascend(posting[T]{value, p}, func(e posting[T]) bool { return e.value == value && yield(e.item) })
}

// allValues returns the values, sorted, each once.
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

// probes are items that stand for a key in a search. They are kept because an item with a large T is dear to make.
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

// A lookup finds items by the hash of their key, in some hundred nanoseconds where a tree of 100,000 takes more than a thousand: the keys on
// the way down a tree are cold. A map by key would take twice the memory. It may not know an item that is there: see certain.
type hashIndex[T any] struct {
	items map[uint64]*Item[T]
	seed  maphash.Seed
	// certain: what is not found is not there. It ends with the first two keys of one hash, of which it holds one.
	complete bool
	// hash replaces the hash function in tests; nil: maphash.
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

// get returns the item of key; sure is false where it can't be told whether there is one.
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
