package informer

import (
	"hash/maphash"

	"github.com/listwatch/listwatch"
)

// A lookup finds items by the hash of their key, in some hundred nanoseconds where a tree of 100,000 takes more than a thousand: the keys on
// the way down a tree are cold. A map by key would take twice the memory. It may not know an item that is there: see certain.
type lookup[T any] struct {
	items map[uint64]*Item[T]
	seed  maphash.Seed
	// certain: what is not found is not there. It ends with the first two keys of one hash, of which it holds one.
	certain bool
	// hash replaces the hash function in tests; nil: maphash.
	hash func(listwatch.Key) uint64
}

func newLookup[T any](n int) lookup[T] {
	return lookup[T]{items: make(map[uint64]*Item[T], n), seed: maphash.MakeSeed(), certain: true}
}

func (l *lookup[T]) of(key listwatch.Key) uint64 {
	if l.hash != nil {
		return l.hash(key)
	}
	return maphash.Comparable(l.seed, key)
}

// get returns the item of key; sure is false where it can't be told whether there is one.
func (l *lookup[T]) get(key listwatch.Key) (item *Item[T], sure bool) {
	if len(l.items) == 0 {
		return nil, l.certain
	}
	if i := l.items[l.of(key)]; i != nil && i.Key == key {
		return i, true
	}
	return nil, l.certain
}

func (l *lookup[T]) put(item *Item[T]) {
	h := l.of(item.Key)
	if i := l.items[h]; i != nil && i.Key != item.Key {
		l.certain = false
		return
	}
	l.items[h] = item
}

func (l *lookup[T]) remove(key listwatch.Key) {
	h := l.of(key)
	if i := l.items[h]; i != nil && i.Key == key {
		delete(l.items, h)
	}
}
