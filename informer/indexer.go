package informer

import (
	"iter"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
)

// An Indexer is the local store: objects in key order, with named indexes. It is safe for concurrent use, and the zero value is ready.
//
// Reading takes a snapshot where it would take long, so that no reader keeps a writer waiting: a writer pays for a snapshot by copying the
// few nodes of the trees that it then changes.
type Indexer[T any] struct {
	// write is held by a writer for as long as it takes, index functions included. Lock order: write before mu.
	writeMu sync.Mutex
	// Guarded by write.
	changes []indexChange
	values   []string // of which scratch is made
	grown   int      // entries of the trees since they were tidied

	// mu is held for one look or one change, O(log n).
	mu sync.RWMutex
	// Guarded by mu; changed only with write held too.
	version listwatch.Version
	contents    contents[T]
	byHash  hashIndex[T]
	// snap is what readers have of the state now; nil: nobody has asked since the last change. Guarded by mu.
	snapshot *Snapshot[T]
}

// A change is what a write does to one index.
type indexChange struct{ old, now []string }

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

// Get returns the object of a key.
func (x *Indexer[T]) Get(key listwatch.Key) (value T, ok bool) {
	if i, ok := x.Item(key); ok {
		return i.Value, true
	}
	return value, false
}

// Item returns the object of a key with its version and labels.
func (x *Indexer[T]) Item(key listwatch.Key) (*Item[T], bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if i, sure := x.byHash.get(key); sure {
		return i, i != nil
	}
	return x.contents.get(key)
}

// Items returns the items in key order, as they are at one moment.
func (x *Indexer[T]) Items() iter.Seq[*Item[T]] { return x.Snapshot().Items() }

// Len returns the number of objects.
func (x *Indexer[T]) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.contents.len()
}

// Version returns the one up to which everything is in the store. Single objects may be newer.
func (x *Indexer[T]) Version() listwatch.Version {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.version
}

// List returns the objects that q selects, in key order, as they are at one moment. Namespace, Name and Labels work as they do elsewhere;
// Fields can name metadata.name and metadata.namespace. Newest and Any both mean the state in memory. What memory can't answer (other
// fields, versions, limits, continue tokens, initial events) is an error of code [listwatch.Invalid] that says what to use instead.
func (x *Indexer[T]) List(q listwatch.Query) ([]T, error) {
	sel, err := newListFilter(q)
	if err != nil {
		return nil, err
	}
	if sel.matchesOneKey() {
		var found []T
		x.mu.RLock()
		defer x.mu.RUnlock()
		x.contents.scan(sel, func(i *Item[T]) bool { found = append(found, i.Value); return true })
		return found, nil
	}
	s := x.Snapshot()
	var all []T
	if sel.matchesAll() {
		all = make([]T, 0, s.Len())
	}
	s.contents.scan(sel, func(i *Item[T]) bool { all = append(all, i.Value); return true })
	return all, nil
}

// ByIndex returns the objects that an index has under value, in key order, as they are at one moment. An index that doesn't exist is an
// error of code [listwatch.NotFound] that names those there are.
func (x *Indexer[T]) ByIndex(name, value string) ([]T, error) {
	if found, complete, err := x.fewByIndex(name, value); complete || err != nil {
		return found, err
	}
	s := x.Snapshot()
	i, err := s.contents.index(name)
	if err != nil {
		return nil, err
	}
	var found []T
	i.scan(value, s.contents.probes, func(i *Item[T]) bool { found = append(found, i.Value); return true })
	return found, nil
}

// few is ByIndex where there are few: to read them under the lock takes less than the copies that a snapshot makes the next writer pay for.
func (x *Indexer[T]) fewByIndex(name, value string) (found []T, complete bool, err error) {
	const most = 128 // some microseconds; as many pods as a node has
	x.mu.RLock()
	defer x.mu.RUnlock()
	i, err := x.contents.index(name)
	if err != nil {
		return nil, false, err
	}
	complete = true
	i.scan(value, x.contents.probes, func(i *Item[T]) bool {
		complete = len(found) < most
		if complete {
			found = append(found, i.Value)
		}
		return complete
	})
	return found, complete, nil
}

// IndexValues returns the values of an index, sorted. An index that doesn't exist is an error of code [listwatch.NotFound].
func (x *Indexer[T]) IndexValues(name string) ([]string, error) {
	return x.Snapshot().IndexValues(name)
}

// Snapshot returns the store as it is now, at once, however large it is.
func (x *Indexer[T]) Snapshot() *Snapshot[T] {
	x.mu.RLock()
	s := x.snapshot
	x.mu.RUnlock()
	if s != nil {
		return s
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.snapshot == nil {
		x.init()
		x.snapshot = &Snapshot[T]{version: x.version, contents: x.contents.copy()}
	}
	return x.snapshot
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

// copy returns v for readers. The trees share all nodes until one of them is written to.
func (v *contents[T]) copy() contents[T] {
	c := contents[T]{items: v.items.Copy(), indexes: make([]index[T], len(v.indexes)), probes: v.probes}
	for i, x := range v.indexes {
		c.indexes[i] = index[T]{name: x.name, tree: x.tree.Copy()}
	}
	return c
}
