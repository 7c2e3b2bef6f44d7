package informer

import (
	"slices"
	"strconv"

	"github.com/listwatch/listwatch"
)

// AddIndex adds a named index, at any time. The index is complete when AddIndex returns.
// Writers block while it is built, but readers do not. If name is empty or taken, or f is
// nil or panics, AddIndex returns an error of code [listwatch.Invalid] and adds nothing.
//
// If f panics for an object that an [Informer] receives later, the Informer does not recover,
// because a store without that object would not be a copy of the source.
func (l *localStore[T]) AddIndex(name string, f IndexFunc[T]) error {
	invalid := func(message string) error {
		return &listwatch.Error{Code: listwatch.Invalid, Op: "add index " + strconv.Quote(name), Message: message}
	}
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	if name == "" || f == nil {
		return invalid("an index needs a name and a function")
	}
	if _, err := l.contents.index(name); err == nil {
		return invalid("an index of that name exists")
	}
	added := index[T]{name: name, values: f}
	if err := added.build(l.contents.items); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.init()
	l.snapshot = nil
	l.contents.indexes = append(l.contents.indexes, added)
	return nil
}

// set stores item, or removes the item of key if item is nil.
func (l *localStore[T]) set(key listwatch.Key, item *Item[T]) error {
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	before, ok := l.Item(key)
	if !ok && item == nil {
		return nil
	}
	// Index functions are user code, so they run before anything changes and without
	// blocking readers.
	changes, values := l.changes[:0], l.values[:0]
	defer func() {
		clear(changes)
		clear(values)
		l.changes, l.values = changes[:0], values[:0]
	}()
	for i := range l.contents.indexes {
		var err error
		begin := len(values)
		if values, err = l.contents.indexes[i].appendValues(values, before); err != nil {
			return err
		}
		middle := len(values)
		if values, err = l.contents.indexes[i].appendValues(values, item); err != nil {
			return err
		}
		changes = append(changes, indexChange{values[begin:middle], values[middle:]})
	}
	l.store(before, item, changes)
	return nil
}

// store puts item in the place of before and applies changes to the indexes. before is nil if the
// key is new, and item is nil if before is deleted.
func (l *localStore[T]) store(before, item *Item[T], changes []indexChange) {
	added := 0
	if before == nil {
		added = 1
	}
	for _, c := range changes {
		if !slices.Equal(c.old, c.now) {
			added += len(c.now)
		}
	}
	defer l.countGrowth(added)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.init()
	l.snapshot = nil
	if item != nil {
		l.contents.items.Put(item)
		l.byHash.put(item)
	} else {
		l.contents.items.Delete(before)
		l.byHash.remove(before.Key)
	}
	for i, c := range changes {
		l.contents.indexes[i].replace(before, c.old, item, c.now)
	}
}

// setVersion sets the version; see [Indexer.SetVersion].
func (l *localStore[T]) setVersion(version listwatch.Version) {
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = version
	if l.snapshot != nil && l.snapshot.version != version {
		l.snapshot = &Snapshot[T]{version: version, contents: l.snapshot.contents}
	}
}

// init prepares the zero value. The caller must hold l.mu.
func (l *localStore[T]) init() {
	if l.contents.items == nil {
		l.contents.items = newItems()
		if l.byHash.items == nil {
			l.byHash = newHashIndex[T](0)
		}
	}
}

// Compaction. The nodes of a growing B-tree keep up to half of the replaced items in memory; see
// [ordered.Set.Compacted]. Therefore a tree that has grown by an eighth is copied node by node,
// which costs about nine pointer moves per object in total.

// countGrowth counts new entries of the trees and compacts the trees when there are many.
// The caller must hold l.writeMu but not l.mu.
func (l *localStore[T]) countGrowth(entries int) {
	l.grown += entries
	if l.grown >= 64 && l.grown >= l.Len()/8 {
		l.compactTrees()
	}
}

// compact releases replaced objects to the garbage collector. It is called when the initial state
// is complete, because the state may then remain unchanged for a long time.
func (l *localStore[T]) compact() {
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	l.compactTrees()
}

// compactTrees compacts all trees. The caller must hold l.writeMu but not l.mu.
func (l *localStore[T]) compactTrees() {
	l.grown = 0
	l.mu.Lock()
	l.init()
	c := l.contents.copy()
	l.mu.Unlock()
	// Readers continue to use the old trees. No other writer can change them, because
	// writeMu is held.
	c.items = c.items.Compacted()
	for i := range c.indexes {
		c.indexes[i].tree = c.indexes[i].tree.Compacted()
		c.indexes[i].values = l.contents.indexes[i].values
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contents = c
}
