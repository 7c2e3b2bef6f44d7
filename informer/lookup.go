package informer

import (
	"hash/maphash"

	"github.com/listwatch/listwatch"
)

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
