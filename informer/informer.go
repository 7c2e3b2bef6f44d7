package informer

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
)

// An Informer keeps a typed copy of a collection up to date, and tells handlers what changes. The zero Informer but for Source is ready;
// Run makes it work. Its methods are safe for concurrent use, before, during and after Run; fields must not be changed once one of them was
// called, and it must not be copied.
//
// # Promises
//
// The local store is the state of the selection at one version after another: never an older one after a newer one, and after every
// interruption the same as a fresh list. For each object a handler sees a subsequence of its states, in order, that ends with the one that
// is there now; it sees Add, then Updates, then Delete, and never a state that the local store did not have before the call. Changes of
// different objects come in the order in which they first waited, and states that came while others waited may be left out; see
// [HandlerOptions].
type Informer[T any] struct {
	// Source is followed: a store, a Remote, a relay.
	Source listwatch.Source
	// Query selects, by its Namespace, Name, Labels and Fields; the rest is ignored.
	Query listwatch.Query
	// Decode, Transform, PageSize, Backoff and Trace are as in [Reflector].
	Decode    func(*listwatch.Object) (T, error)
	Transform func(T) (T, error)
	PageSize  int
	Backoff   listwatch.Backoff
	Trace     *Trace
	// Resync is how often a handler that doesn't say otherwise is shown the whole local store. Zero or negative: never.
	Resync time.Duration
	// DetectMutations has every stored value compared every second, and once more at the end of Run, with what it was when it came, to find
	// code that modifies what it was given. It panics where it finds one. It is for tests: each look encodes everything.
	DetectMutations bool

	once    sync.Once
	store   Indexer[T]
	fifo    DeltaFIFO[T]
	started atomic.Bool   // Run was called
	done    chan struct{} // closed when Run ends
	// originals is nil unless DetectMutations. Owned by Run.
	mutations *mutationDetector[T]
	handlers  sync.WaitGroup // their goroutines

	mu sync.Mutex
	// Guarded by mu, which is taken before the locks of store, fifo and queues.
	registrations map[*Registration[T]]struct{}
	isSynced      bool      // the first state is in the store, and every registration has its mark
	waiters       []*waiter // for versions
}

// init makes what the zero value lacks.
func (i *Informer[T]) init() {
	i.once.Do(func() {
		i.registrations = make(map[*Registration[T]]struct{})
		i.fifo.KnownObjects = &i.store
		i.done = make(chan struct{})
	})
}

// Run keeps the store up to date and the handlers called until ctx ends, and returns ctx.Err() once the last call of a handler has returned.
// An Informer runs once: a second Run is an error of code Invalid. Whatever goes wrong at the Source is told to Trace and tried again.
func (i *Informer[T]) Run(ctx context.Context) error {
	if i.Source == nil {
		return errNoSource("run an informer")
	}
	if i.started.Swap(true) {
		return &listwatch.Error{Code: listwatch.Invalid, Op: "run an informer", Message: "it runs, or has run: make another one"}
	}
	i.init()
	if i.DetectMutations {
		i.mutations = newMutationDetector[T]()
	}
	var work sync.WaitGroup
	work.Go(func() {
		r := &Reflector[T]{
			Source: i.Source, Sink: (*informerSink[T])(i), Query: i.Query, Decode: i.Decode, Transform: i.Transform, PageSize: i.PageSize,
			Backoff: i.Backoff, Trace: i.Trace,
		}
		_ = r.Run(ctx)
	})
	if i.DetectMutations {
		work.Go(func() { i.mutations.run(ctx) })
	}
	for i.fifo.Pop(ctx, i.handleDeltas) == nil {
		i.publishProgress()
		i.yield(ctx)
	}
	work.Wait()
	i.shutDown()
	i.handlers.Wait()
	i.mutations.check()
	return ctx.Err()
}

// end lets nothing begin any more.
func (i *Informer[T]) shutDown() {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.done)
	for r := range i.registrations {
		if r.timer != nil {
			r.timer.Stop()
		}
	}
}

func (i *Informer[T]) isDone() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// An intake is an Informer as the Sink of its Reflector.
type informerSink[T any] Informer[T]

// Replace implements Sink.
func (i *informerSink[T]) Replace(items []*Item[T], version listwatch.Version) error {
	defer (*Informer[T])(i).publishProgress() // there may be nothing to pop
	return i.fifo.Replace(items, version)
}

// Apply implements Sink.
func (i *informerSink[T]) Apply(changes ...Delta[T]) error {
	err := i.fifo.Apply(changes...)
	if i.fifo.Len() == 0 {
		(*Informer[T])(i).publishProgress() // what came and went again leaves nothing to pop
	}
	return err
}

// Bookmark implements Sink.
func (i *informerSink[T]) Bookmark(version listwatch.Version) error {
	defer (*Informer[T])(i).publishProgress()
	return i.fifo.Bookmark(version)
}

// advance makes known how far the store has come.
func (i *Informer[T]) publishProgress() {
	i.mu.Lock()
	defer i.mu.Unlock()
	version := i.fifo.Version()
	i.store.SetVersion(version)
	if !i.isSynced && i.fifo.HasSynced() {
		i.isSynced = true
		i.store.compact()
		for r := range i.registrations {
			r.markSynced()
		}
	}
	i.waiters = slices.DeleteFunc(i.waiters, func(w *waiter) bool { return w.notify(version, i.isSynced) })
}

// process stores what the deltas of one key say, and tells the handlers. It fails never.
func (i *Informer[T]) handleDeltas(deltas Deltas[T], _ bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for d := range deltas.All() {
		i.apply(d)
	}
	return nil
}

// apply is called with mu held.
func (i *Informer[T]) apply(d Delta[T]) {
	key := d.Item.Key
	old, _ := i.store.Item(key)
	n := notification[T]{key: key, old: old, now: d.Item, initial: d.Initial}
	switch {
	case d.Type == DeltaDeleted:
		if old == nil {
			return
		}
		i.store.Delete(key)
		i.mutations.track(old, nil)
		n.deleted, n.finalStateUnknown, n.deletedAt = true, d.FinalStateUnknown, d.Item.Version
	case old != nil && old.Version == d.Item.Version && reflect.DeepEqual(old.Value, d.Item.Value):
		return // a list showed what is known; where versions have begun anew, the same one may be of another state
	default:
		i.mutations.track(old, d.Item)
		if err := i.store.Put(d.Item); err != nil {
			panic(err) // of an index function: the program's, as that of a handler
		}
	}
	for r := range i.registrations {
		r.queue.push(n)
	}
}

// giveWay waits for the handlers that are not to miss anything.
func (i *Informer[T]) yield(ctx context.Context) {
	i.mu.Lock()
	var slow []*Registration[T]
	for r := range i.registrations {
		if r.queue.maxPending > 0 && r.queue.len() >= r.queue.maxPending {
			slow = append(slow, r)
		}
	}
	i.mu.Unlock()
	for _, r := range slow {
		r.queue.waitForRoom(ctx, r.removed)
	}
}

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
