package informer

import (
	"iter"
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
	values  []string // of which scratch is made
	grown   int      // entries of the trees since they were tidied

	// mu is held for one look or one change, O(log n).
	mu sync.RWMutex
	// Guarded by mu; changed only with write held too.
	version  listwatch.Version
	contents contents[T]
	byHash   hashIndex[T]
	// snap is what readers have of the state now; nil: nobody has asked since the last change. Guarded by mu.
	snapshot *Snapshot[T]
}

// A change is what a write does to one index.
type indexChange struct{ old, now []string }

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

// copy returns v for readers. The trees share all nodes until one of them is written to.
func (v *contents[T]) copy() contents[T] {
	c := contents[T]{items: v.items.Copy(), indexes: make([]index[T], len(v.indexes)), probes: v.probes}
	for i, x := range v.indexes {
		c.indexes[i] = index[T]{name: x.name, tree: x.tree.Copy()}
	}
	return c
}
