// Package ordered provides ordered sets that are copied on write. It hides the B-tree behind an
// interface: otherwise the compiler would compile all methods of the generic B-tree again in every
// package that uses a type with a B-tree inside, even indirectly. Such copies were half of the
// machine code of this repository's packages.
package ordered

import (
	"sort"

	"github.com/tidwall/btree"
)

// A Set is an ordered set. It is not safe for concurrent use, but a set that is not written to
// may be read concurrently.
type Set[E any] interface {
	// Len returns the number of elements.
	Len() int
	// Get returns the element that is equal to e and whether it exists.
	Get(e E) (E, bool)
	// Scan calls f with each element in order, until f returns false.
	Scan(f func(E) bool)
	// Ascend calls f with each element from the given one on, in order, until f returns false. The
	// given element need not be in the set.
	Ascend(from E, f func(E) bool)
	// Rank returns the number of elements before e, which need not be in the set. It takes the time
	// of some 20 calls of Get in a set of a million elements.
	Rank(e E) int
	// Put adds e, and replaces an element that is equal to e.
	Put(e E)
	// Delete removes the element that is equal to e, if there is one.
	Delete(e E)
	// Copy returns a copy in constant time. Both sets share their nodes until one of them is
	// written to. Copy itself counts as a write, so it must not run concurrently with reads.
	Copy() Set[E]
	// Compacted returns a copy that shares no nodes with the set. Like Copy, it counts as a write.
	Compacted() Set[E]
}

// New returns an empty set in the order of less. A node of its B-tree has up to 2*degree-1
// elements.
//
// A caller that the compiler can inline into other packages needs a noinline directive, or these
// packages compile the B-tree, too.
func New[E any](degree int, less func(a, b E) bool) Set[E] {
	return set[E]{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: degree})}
}

type set[E any] struct{ tree *btree.BTreeG[E] }

func (s set[E]) Len() int                      { return s.tree.Len() }
func (s set[E]) Get(e E) (E, bool)             { return s.tree.Get(e) }
func (s set[E]) Scan(f func(E) bool)           { s.tree.Scan(f) }
func (s set[E]) Ascend(from E, f func(E) bool) { s.tree.Ascend(from, f) }
func (s set[E]) Put(e E)                       { s.tree.Set(e) }
func (s set[E]) Delete(e E)                    { s.tree.Delete(e) }
func (s set[E]) Copy() Set[E]                  { return set[E]{s.tree.Copy()} }

func (s set[E]) Rank(e E) int {
	return sort.Search(s.tree.Len(), func(i int) bool {
		element, ok := s.tree.GetAt(i)
		return !ok || !s.tree.Less(element, e)
	})
}

// Compacted makes every node of the copy own its array. When the B-tree splits a node, both
// halves share one array at first. An element that one half replaces stays reachable through
// that array until the other half grows.
func (s set[E]) Compacted() Set[E] {
	c := s.tree.Copy()
	c.ScanMut(func(E) bool { return true })
	return set[E]{c}
}
