package informer

import "github.com/listwatch/listwatch"

// An Indexer is a local store of its own: objects in key order, with named indexes. It is safe for
// concurrent use, and the zero value is ready to use. An [Informer] has the same methods for
// reading.
//
// Reads that may take long use a snapshot, so that readers never block a writer for long. The first
// write after a snapshot copies the few tree nodes that it changes.
type Indexer[T any] struct{ localStore[T] }

// Put stores an item, replacing the item of the same key. If an index function panics, Put
// returns an error and changes nothing.
func (i *Indexer[T]) Put(item *Item[T]) error { return i.set(item.Key, item) }

// Delete removes the item of a key, if there is one. If an index function panics, Delete
// returns an error and changes nothing.
func (i *Indexer[T]) Delete(key listwatch.Key) error { return i.set(key, nil) }

// Replace replaces the whole content with items and sets the version, in one step. If two
// items have the same key, the later one is used. If an index function panics, Replace
// returns an error and changes nothing.
func (i *Indexer[T]) Replace(items []*Item[T], version listwatch.Version) error {
	i.writeMu.Lock()
	defer i.writeMu.Unlock()
	all, found := newItems(), newHashIndex[T](len(items))
	for _, item := range items {
		all.Put(item)
		found.put(item)
	}
	all = all.Compacted()
	indexes := make([]index[T], len(i.contents.indexes))
	for n, old := range i.contents.indexes {
		indexes[n] = index[T]{name: old.name, values: old.values}
		if err := indexes[n].build(all); err != nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.init()
	i.snapshot, i.version = nil, version
	i.contents.items, i.contents.indexes, i.byHash = all, indexes, found
	return nil
}

// SetVersion sets the version up to which the store holds everything. The caller must ensure that
// the store really does. The version may decrease only if the versions of the source have started
// over (a new epoch).
func (i *Indexer[T]) SetVersion(version listwatch.Version) { i.setVersion(version) }
