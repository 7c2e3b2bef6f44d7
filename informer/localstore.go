package informer

import (
	"iter"
	"sync"

	"github.com/listwatch/listwatch"
)

// A localStore holds the objects of an [Indexer] or an [Informer] in key order, with named indexes.
// The zero value is ready to use, and it is safe for concurrent use.
type localStore[T any] struct {
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

// Get returns the object of a key and whether it exists. Like all reads it uses only memory: it
// sends no request to a Source and does not wait for writers. Before the first sync of an Informer
// the store may be empty or incomplete. Values are shared and must not be modified.
func (l *localStore[T]) Get(key listwatch.Key) (value T, ok bool) {
	if i, ok := l.Item(key); ok {
		return i.Value, true
	}
	return value, false
}

// Item returns the object of a key together with its version and labels.
func (l *localStore[T]) Item(key listwatch.Key) (*Item[T], bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if i, sure := l.byHash.get(key); sure {
		return i, i != nil
	}
	return l.contents.get(key)
}

// Items returns an iterator over a snapshot of the items, in key order.
func (l *localStore[T]) Items() iter.Seq[*Item[T]] { return l.Snapshot().Items() }

// Len returns the number of objects.
func (l *localStore[T]) Len() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.contents.len()
}

// Version returns the version up to which the store holds everything. Individual objects
// may be newer. It is zero before the first state is stored.
func (l *localStore[T]) Version() listwatch.Version {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.version
}

// List returns the objects that q selects, in key order, from one snapshot. Namespace, Name and
// Labels have their usual meaning; Fields may name only metadata.name and metadata.namespace.
// StartNewest and StartAny both mean the state in memory. If memory cannot answer q (other
// fields, versions, limits, continue tokens, initial events), the error has code
// [listwatch.Invalid] and names an alternative.
func (l *localStore[T]) List(q listwatch.Query) ([]T, error) {
	sel, err := newListFilter(q)
	if err != nil {
		return nil, err
	}
	if sel.matchesOneKey() {
		var found []T
		l.mu.RLock()
		defer l.mu.RUnlock()
		l.contents.scan(sel, func(i *Item[T]) bool { found = append(found, i.Value); return true })
		return found, nil
	}
	s := l.Snapshot()
	var all []T
	if sel.matchesAll() {
		all = make([]T, 0, s.Len())
	}
	s.contents.scan(sel, func(i *Item[T]) bool { all = append(all, i.Value); return true })
	return all, nil
}

// ByIndex returns the objects that the named index holds under the given value, in key order. All
// of them are from the same snapshot. For an unknown index, the error has code
// [listwatch.NotFound] and lists the existing indexes.
func (l *localStore[T]) ByIndex(name, value string) ([]T, error) {
	if found, complete, err := l.fewByIndex(name, value); complete || err != nil {
		return found, err
	}
	s := l.Snapshot()
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
func (l *localStore[T]) fewByIndex(name, value string) (found []T, complete bool, err error) {
	const limit = 128 // enough for the pods of one node; reading so many takes a few microseconds
	l.mu.RLock()
	defer l.mu.RUnlock()
	i, err := l.contents.index(name)
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

// IndexValues returns the values of an index, sorted. For an unknown index, the error has code
// [listwatch.NotFound].
func (l *localStore[T]) IndexValues(name string) ([]string, error) {
	return l.Snapshot().IndexValues(name)
}

// Snapshot returns the current state of the store, in constant time. The snapshot never changes. It
// shares memory with the store, so it costs memory only for the objects that the store replaces
// later.
func (l *localStore[T]) Snapshot() *Snapshot[T] {
	l.mu.RLock()
	s := l.snapshot
	l.mu.RUnlock()
	if s != nil {
		return s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.snapshot == nil {
		l.init()
		l.snapshot = &Snapshot[T]{version: l.version, contents: l.contents.copy()}
	}
	return l.snapshot
}

// copy returns a copy of c for readers. A copied tree shares all nodes with its original until one
// of the two is written.
func (c *contents[T]) copy() contents[T] {
	copied := contents[T]{items: c.items.Copy(), indexes: make([]index[T], len(c.indexes))}
	for i, x := range c.indexes {
		copied.indexes[i] = index[T]{name: x.name, tree: x.tree.Copy()}
	}
	return copied
}
