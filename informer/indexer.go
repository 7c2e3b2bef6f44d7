package informer

import (
	"iter"
	"sync"

	"github.com/listwatch/listwatch"
)

// An Indexer is the local store: objects in key order, with named indexes. It is safe for
// concurrent use, and the zero value is ready to use.
//
// Reads that may take long use a snapshot, so that readers never block a writer for long. The first
// write after a snapshot copies the few tree nodes that it changes.
type Indexer[T any] struct {
	// writeMu is held during a whole write, including the calls of index functions. Lock
	// order: writeMu before mu.
	writeMu sync.Mutex
	// changes and values are scratch memory of set. Guarded by writeMu.
	changes []indexChange
	// values is the backing array of the slices in changes.
	values []string
	// grown is the number of entries that were added to the trees since the last compaction.
	grown int

	// mu is held only briefly: for a lookup, a change of one object, or a read of a small result.
	mu sync.RWMutex
	// Guarded by mu. Changed only while writeMu is held as well.
	version  listwatch.Version
	contents contents[T]
	byHash   hashIndex[T]
	// snapshot is the current snapshot, or nil if none was taken since the last change.
	// Guarded by mu.
	snapshot *Snapshot[T]
}

// An indexChange holds the index values of an item before and after a write, for one index.
type indexChange struct{ old, now []string }

// Get returns the object of a key and whether it exists.
func (x *Indexer[T]) Get(key listwatch.Key) (value T, ok bool) {
	if i, ok := x.Item(key); ok {
		return i.Value, true
	}
	return value, false
}

// Item returns the object of a key together with its version and labels.
func (x *Indexer[T]) Item(key listwatch.Key) (*Item[T], bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if i, sure := x.byHash.get(key); sure {
		return i, i != nil
	}
	return x.contents.get(key)
}

// Items returns an iterator over a snapshot of the items, in key order.
func (x *Indexer[T]) Items() iter.Seq[*Item[T]] { return x.Snapshot().Items() }

// Len returns the number of objects.
func (x *Indexer[T]) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.contents.len()
}

// Version returns the version up to which the store holds everything. Individual objects
// may be newer.
func (x *Indexer[T]) Version() listwatch.Version {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.version
}

// List returns the objects that q selects, in key order, from one snapshot. Namespace, Name
// and Labels have their usual meaning; Fields may name only metadata.name and
// metadata.namespace. Newest and Any both mean the state in memory. A query that memory
// cannot answer (other fields, versions, limits, continue tokens, initial events) is an
// error of code [listwatch.Invalid] that names an alternative.
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

// ByIndex returns the objects that the named index holds under the given value, in key order. All
// of them are from the same snapshot. An unknown index is an error of code [listwatch.NotFound]
// that lists the existing indexes.
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
	i.scan(value, func(i *Item[T]) bool { found = append(found, i.Value); return true })
	return found, nil
}

// fewByIndex reads a small result under the lock. That is cheaper than a snapshot, after which the
// next write must copy tree nodes. complete is false if the result is not small.
func (x *Indexer[T]) fewByIndex(name, value string) (found []T, complete bool, err error) {
	const limit = 128 // enough for the pods of one node; reading so many takes a few microseconds
	x.mu.RLock()
	defer x.mu.RUnlock()
	i, err := x.contents.index(name)
	if err != nil {
		return nil, false, err
	}
	complete = true
	i.scan(value, func(i *Item[T]) bool {
		complete = len(found) < limit
		if complete {
			found = append(found, i.Value)
		}
		return complete
	})
	return found, complete, nil
}

// IndexValues returns the values of an index, sorted. An unknown index is an error of code
// [listwatch.NotFound].
func (x *Indexer[T]) IndexValues(name string) ([]string, error) {
	return x.Snapshot().IndexValues(name)
}

// Snapshot returns the current state of the store. It takes constant time.
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

// copy returns a copy of v for readers. A copied tree shares all nodes with its original until one
// of the two is written.
func (v *contents[T]) copy() contents[T] {
	c := contents[T]{items: v.items.Copy(), indexes: make([]index[T], len(v.indexes))}
	for i, x := range v.indexes {
		c.indexes[i] = index[T]{name: x.name, tree: x.tree.Copy()}
	}
	return c
}
