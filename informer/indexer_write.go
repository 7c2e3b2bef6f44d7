package informer

import (
	"slices"

	"github.com/listwatch/listwatch"
)

// AddIndex adds a named index, at any time. The index is complete when AddIndex returns.
// Writers block while it is built, but readers do not. If name is empty or taken, or f is
// nil or panics, AddIndex returns an error of code [listwatch.Invalid] and adds nothing.
func (x *Indexer[T]) AddIndex(name string, f IndexFunc[T]) error {
	invalid := func(message string) error {
		return &listwatch.Error{Code: listwatch.Invalid, Op: "add index " + quote(name), Message: message}
	}
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	if name == "" || f == nil {
		return invalid("an index needs a name and a function")
	}
	if _, err := x.contents.index(name); err == nil {
		return invalid("an index of that name exists")
	}
	added := index[T]{name: name, values: f}
	if err := added.build(x.contents.items); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.init()
	x.snapshot = nil
	x.contents.indexes = append(x.contents.indexes, added)
	return nil
}

// Put stores an item, replacing the item of the same key. If an index function panics, Put
// returns an error and changes nothing.
func (x *Indexer[T]) Put(item *Item[T]) error { return x.set(item.Key, item) }

// Delete removes the item of a key, if there is one. If an index function panics, Delete
// returns an error and changes nothing.
func (x *Indexer[T]) Delete(key listwatch.Key) error { return x.set(key, nil) }

// set stores item, or removes the item of key if item is nil.
func (x *Indexer[T]) set(key listwatch.Key, item *Item[T]) error {
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	before, ok := x.Item(key)
	if !ok && item == nil {
		return nil
	}
	// Index functions are user code, so they run before anything changes and without
	// blocking readers.
	changes, values := x.changes[:0], x.values[:0]
	defer func() {
		clear(changes)
		clear(values)
		x.changes, x.values = changes[:0], values[:0]
	}()
	for i := range x.contents.indexes {
		var err error
		begin := len(values)
		if values, err = x.contents.indexes[i].appendValues(values, before); err != nil {
			return err
		}
		middle := len(values)
		if values, err = x.contents.indexes[i].appendValues(values, item); err != nil {
			return err
		}
		changes = append(changes, indexChange{values[begin:middle], values[middle:]})
	}
	x.store(before, item, changes)
	return nil
}

// store puts item in the place of before and applies changes to the indexes. before is nil if the
// key is new, and item is nil if before is deleted.
func (x *Indexer[T]) store(before, item *Item[T], changes []indexChange) {
	added := 0
	if before == nil {
		added = 1
	}
	for _, c := range changes {
		if !slices.Equal(c.old, c.now) {
			added += len(c.now)
		}
	}
	defer x.countGrowth(added)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.init()
	x.snapshot = nil
	if item != nil {
		x.contents.items.Put(item)
		x.byHash.put(item)
	} else {
		x.contents.items.Delete(before)
		x.byHash.remove(before.Key)
	}
	for i, c := range changes {
		x.contents.indexes[i].replace(before, c.old, item, c.now)
	}
}

// Replace replaces the whole content with items and sets the version, in one step. If two
// items have the same key, the later one is used. If an index function panics, Replace
// returns an error and changes nothing.
func (x *Indexer[T]) Replace(items []*Item[T], version listwatch.Version) error {
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	all, found := newItems(), newHashIndex[T](len(items))
	for _, i := range items {
		all.Put(i)
		found.put(i)
	}
	all = all.Compacted()
	indexes := make([]index[T], len(x.contents.indexes))
	for i := range indexes {
		indexes[i] = index[T]{name: x.contents.indexes[i].name, values: x.contents.indexes[i].values}
		if err := indexes[i].build(all); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.init()
	x.snapshot, x.version = nil, version
	x.contents.items, x.contents.indexes, x.byHash = all, indexes, found
	return nil
}

// SetVersion sets the version up to which the store holds everything. The caller must ensure that
// the store really does. The version may decrease only if the versions of the source have started
// over (a new epoch).
func (x *Indexer[T]) SetVersion(version listwatch.Version) {
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.version = version
	if x.snapshot != nil && x.snapshot.version != version {
		x.snapshot = &Snapshot[T]{version: version, contents: x.snapshot.contents}
	}
}

// init prepares the zero value. The caller must hold x.mu.
func (x *Indexer[T]) init() {
	if x.contents.items == nil {
		x.contents.items = newItems()
		if x.byHash.items == nil {
			x.byHash = newHashIndex[T](0)
		}
	}
}

// Compaction. The nodes of a growing B-tree keep up to half of the replaced items in memory; see
// [ordered.Set.Compacted]. Therefore a tree that has grown by an eighth is copied node by node,
// which costs about nine pointer moves per object in total.

// countGrowth counts new entries of the trees and compacts the trees when there are many.
// The caller must hold x.writeMu but not x.mu.
func (x *Indexer[T]) countGrowth(entries int) {
	x.grown += entries
	if x.grown >= 64 && x.grown >= x.Len()/8 {
		x.compactTrees()
	}
}

// compact releases replaced objects to the garbage collector. It is called when the initial state
// is complete, because the state may then remain unchanged for a long time.
func (x *Indexer[T]) compact() {
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	x.compactTrees()
}

// compactTrees compacts all trees. The caller must hold x.writeMu but not x.mu.
func (x *Indexer[T]) compactTrees() {
	x.grown = 0
	x.mu.Lock()
	x.init()
	c := x.contents.copy()
	x.mu.Unlock()
	// Readers continue to use the old trees. No other writer can change them, because
	// writeMu is held.
	c.items = c.items.Compacted()
	for i := range c.indexes {
		c.indexes[i].tree = c.indexes[i].tree.Compacted()
		c.indexes[i].values = x.contents.indexes[i].values
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.contents = c
}
