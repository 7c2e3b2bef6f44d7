package informer

import "github.com/listwatch/listwatch"

// These read the local store, from memory alone: they never ask the Source and never wait for writers. Before WaitForSync it may be empty.
// Values are shared: they must not be modified.

// Get returns the value at key, and whether there is one.
func (i *Informer[T]) Get(key listwatch.Key) (T, bool) { return i.store.Get(key) }

// List returns the values of a selection in key order; see [Indexer.List] for what it may say.
func (i *Informer[T]) List(q listwatch.Query) ([]T, error) { return i.store.List(q) }

// ByIndex returns the values that the named index has under value, in key order.
func (i *Informer[T]) ByIndex(name, value string) ([]T, error) { return i.store.ByIndex(name, value) }

// AddIndex adds an index, at any time; see [Indexer.AddIndex]. A panic of f for an object that comes later ends the program, as that of a
// handler does: a store that lacks an object is not a copy.
func (i *Informer[T]) AddIndex(name string, f IndexFunc[T]) error { return i.store.AddIndex(name, f) }

// Snapshot returns the store as it is now. It does not change any more, and costs nothing but memory for what changes after it.
func (i *Informer[T]) Snapshot() *Snapshot[T] { return i.store.Snapshot() }

// Len returns how many objects there are.
func (i *Informer[T]) Len() int { return i.store.Len() }

// Version returns the version up to which everything that concerns the selection is in the local store; zero: the first state is not there.
func (i *Informer[T]) Version() listwatch.Version { return i.store.Version() }
