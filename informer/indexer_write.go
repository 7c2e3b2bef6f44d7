package informer

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/listwatch/listwatch"
)

// AddIndex adds a named index, at any time: it is complete when AddIndex returns. Writers wait while it is built, readers do not. A name that
// is empty or taken, a nil f and one that panics are errors of code [listwatch.Invalid], and nothing is added.
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
		return invalid("there is one of that name")
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

// Put stores an item, in place of the one with its key. Where an index function panics, Put returns that as an error and changes nothing.
func (x *Indexer[T]) Put(item *Item[T]) error { return x.set(item.Key, item) }

// Delete removes the item of a key; it does nothing where there is none. Errors are those of Put.
func (x *Indexer[T]) Delete(key listwatch.Key) error { return x.set(key, nil) }

// set stores item, or removes what key has where item is nil.
func (x *Indexer[T]) set(key listwatch.Key, item *Item[T]) error {
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	before, ok := x.Item(key)
	if !ok && item == nil {
		return nil
	}
	// Index functions are the user's: they run before anything is changed, and readers need not wait for them.
	changes, texts := x.changes[:0], x.values[:0]
	defer func() {
		clear(changes)
		clear(texts)
		x.changes, x.values = changes[:0], texts[:0]
	}()
	for i := range x.contents.indexes {
		var err error
		begin := len(texts)
		if texts, err = x.contents.indexes[i].appendValues(texts, before); err != nil {
			return err
		}
		middle := len(texts)
		if texts, err = x.contents.indexes[i].appendValues(texts, item); err != nil {
			return err
		}
		changes = append(changes, indexChange{texts[begin:middle], texts[middle:]})
	}
	x.store(before, item, changes)
	return nil
}

// store puts item where before was, either of which may be nil.
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
		x.contents.items.Set(item)
		x.byHash.put(item)
	} else {
		x.contents.items.Delete(before)
		x.byHash.remove(before.Key)
	}
	for i, c := range changes {
		x.contents.indexes[i].replace(before, c.old, item, c.now)
	}
}

// Replace makes items all there is, and version the one up to which everything is here, in one step. Of two items with one key the later one
// counts. Where an index function panics, Replace returns that as an error and changes nothing.
func (x *Indexer[T]) Replace(items []*Item[T], version listwatch.Version) error {
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	all, found := newItems[T](), newHashIndex[T](len(items))
	for _, i := range items {
		all.Set(i)
		found.put(i)
	}
	all = compacted(all)
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

// SetVersion says up to which version everything is in the store. It is the writer's word: lower than before is right only where versions
// began anew.
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

// init makes the zero value ready. mu is held.
func (x *Indexer[T]) init() {
	if x.contents.items == nil {
		x.contents.items = newItems[T]()
		x.contents.probes = new(probes[T])
		if x.byHash.items == nil {
			x.byHash = newHashIndex[T](0)
		}
	}
}

// Where a node of a tree is split, the halves share one array at first. What either half replaces stays in it, out of sight, for as long as
// the other half does not grow: half of the objects could be held twice. So when a tree has grown by an eighth it is copied node by node,
// which leaves nothing behind and costs an object nine moves of a pointer in all.

// grew counts new entries of the trees, and tidies them when there are many. write is held, mu is not.
func (x *Indexer[T]) countGrowth(entries int) {
	x.grown += entries
	if x.grown >= 64 && x.grown >= x.Len()/8 {
		x.compactTrees()
	}
}

// tidy leaves nothing behind of what was replaced so far. It is for the end of a state that may stay as it is for long.
func (x *Indexer[T]) compact() {
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	x.compactTrees()
}

// tidyTrees is called with write held.
func (x *Indexer[T]) compactTrees() {
	x.grown = 0
	x.mu.Lock()
	x.init()
	c := x.contents.copy()
	x.mu.Unlock()
	// Readers go on with the trees as they are: nobody else can write to them now.
	c.items = compacted(c.items)
	for i := range c.indexes {
		c.indexes[i].tree = compacted(c.indexes[i].tree)
		c.indexes[i].values = x.contents.indexes[i].values
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.contents = c
}

// tidied returns a copy of t, of which every node has an array of its own. Nobody may write to t meanwhile.
func compacted[E any](t *btree.BTreeG[E]) *btree.BTreeG[E] {
	c := t.Copy()
	c.ScanMut(func(E) bool { return true })
	return c
}
