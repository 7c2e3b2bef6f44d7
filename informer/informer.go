package informer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/govalue"
	"github.com/listwatch/listwatch/persist"
)

// An Informer keeps a typed copy of a collection up to date and calls handlers with the
// changes. Only Source is required; Run starts the work. The methods are safe for
// concurrent use before, during and after Run. The fields must not be changed after the
// first method call, and an Informer must not be copied.
//
// # Guarantees
//
// The local store moves from one version of the collection to the next. An object never
// returns to an older version, and after every interruption the store equals a fresh list.
// For each object a handler sees a subsequence of the object's states, in order and ending
// with the current one: first an add, then updates, then a deletion. It never sees a state
// that the local store did not hold before the call. Changes of different objects are
// delivered in the order in which their keys were queued. A state that is superseded while
// it is queued may be skipped; see [HandlerOptions].
type Informer[T any] struct {
	// Source is the collection to follow, for example a store, a client.Remote or a relay.
	Source listwatch.Source
	// Selection is the part of the collection to follow. Conflate lets the watches skip states; see
	// [listwatch.Query.Conflate].
	Selection listwatch.Selection
	Conflate  time.Duration
	// Decode, Transform, PageSize, Backoff and Trace have the same meaning as in
	// [Reflector].
	Decode    func(*listwatch.Object) (T, error)
	Transform func(T) (T, error)
	PageSize  int
	Backoff   listwatch.Backoff
	Trace     *Trace
	// Resync is the default interval at which a handler is called with the whole local
	// store; see [HandlerOptions]. Zero or a negative value disables resyncs.
	Resync time.Duration
	// Persist keeps a copy of the objects in a file for the next start. The informer does not show
	// the copy before it has received the changes since.
	Persist persist.File
	// MaxLag makes List, ByIndex and CheckLag fail while the local store may lack a write that was
	// acknowledged longer than MaxLag ago. Every MaxLag/4 the informer requests the newest version
	// from the Source with a list of at most one object. If only other collections of the database
	// change, it also opens a short watch. If that watch has no bookmark, the informer lists all
	// objects. Over HTTP, MaxLag should be at least 5 seconds. If negative, the informer measures
	// [Informer.Lag] every 10 seconds, and nothing fails. If zero, the lag is not measured.
	MaxLag time.Duration
	// DetectMutations makes Run compare every stored value with its original once a second
	// and at the end, and panic if a value was modified. It is meant for tests: each
	// comparison encodes all values.
	DetectMutations bool

	localStore[T]
	state informerState[T]
}

// An informerState holds the state that Run, the handlers and waiting callers share.
type informerState[T any] struct {
	once    sync.Once
	fifo    DeltaFIFO[T]
	persist *persister[T] // nil without Persist; set by Run
	started atomic.Bool   // set by Run
	done    chan struct{} // closed by shutDown, before Run returns
	// mutations is nil unless DetectMutations is set. Owned by Run.
	mutations *govalue.MutationDetector[*Item[T]]
	handlers  sync.WaitGroup // the goroutines of all handlers
	probing   probing
	// isWatching is true while the informer's own watch is open.
	isWatching atomic.Bool
	lag        lagMeter

	mu sync.Mutex
	// Guarded by mu. Lock order: mu before the locks of the store, fifo and the handler queues.
	registrations map[*Registration[T]]struct{}
	// isSynced is true once the initial state is stored. The handlers may sync later.
	isSynced bool
	// restarts is the number of times that the versions had started over when the store reached its
	// version. epoch is the epoch of the newest state, or empty if it is not known.
	restarts uint32
	epoch    string
	waiters  []*waiter
}

// A probing controls the probes with which an informer reaches a version that no event of its
// selection has. The caller that holds the token owns it.
type probing struct {
	token    chan struct{} // capacity 1; holds a token while a call of probeFor probes
	failures int           // the number of probes in a row that have not reached their version
	retryAt  time.Time     // the time of the next probe after too many failures
}

// init prepares the zero value.
func (i *Informer[T]) init() {
	i.state.once.Do(func() {
		i.state.registrations = make(map[*Registration[T]]struct{})
		i.state.fifo.KnownObjects = &i.localStore
		i.state.done, i.state.probing.token = make(chan struct{}), make(chan struct{}, 1)
		i.state.lag.known = make(chan struct{})
	})
}

// Run keeps the store up to date and calls the handlers until ctx ends. It returns ctx.Err() after
// the last call of a handler has returned. An Informer runs once: a second Run returns an error of
// code Invalid. If Decode is missing, the error has code Unsupported. Failures of the Source are
// reported to Trace and retried.
func (i *Informer[T]) Run(ctx context.Context) error {
	if i.Source == nil {
		return errNoSource("run an informer")
	}
	if err := checkDecode(i.Source, i.Decode); err != nil {
		return err
	}
	if i.state.started.Swap(true) {
		return &listwatch.Error{
			Code: listwatch.Invalid, Op: "run an informer", Message: "Run was already called; create another Informer",
		}
	}
	i.init()
	if i.DetectMutations {
		valueOf := func(item *Item[T]) any { return item.Value }
		i.state.mutations = govalue.NewMutationDetector(valueOf, refuseMutation[T])
	}
	i.state.persist = newPersister(i)
	var work sync.WaitGroup
	work.Go(func() {
		r := &Reflector[T]{
			Source: i.Source, Sink: (*informerSink[T])(i), Selection: i.Selection, Conflate: i.Conflate,
			Decode: i.Decode, Transform: i.Transform,
			PageSize: i.PageSize, Backoff: i.Backoff, Trace: i.Trace, persist: i.state.persist, adopted: i.setEpoch,
			watching: i.state.isWatching.Store,
		}
		_ = r.Run(ctx)
	})
	if p := i.state.persist; p != nil {
		work.Go(func() { p.Run(ctx, p.save) })
	}
	work.Go(func() { i.checkLag(ctx) })
	if i.DetectMutations {
		work.Go(func() { i.state.mutations.Run(ctx) })
	}
	for i.state.fifo.Pop(ctx, i.handleDeltas) == nil {
		i.publishProgress()
		i.yield(ctx)
	}
	work.Wait()
	i.state.persist.save()
	i.shutDown()
	i.state.handlers.Wait()
	i.state.mutations.Check()
	return ctx.Err()
}

// refuseMutation panics because the value of item was modified.
func refuseMutation[T any](item *Item[T]) {
	panic(fmt.Sprintf("informer: the stored value of %s was modified; values are shared, so modify a copy. "+
		"Current value: %+v", item.Key, item.Value))
}

// shutDown prevents new calls of handlers.
func (i *Informer[T]) shutDown() {
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	close(i.state.done)
	for r := range i.state.registrations {
		if r.timer != nil {
			r.timer.Stop()
		}
	}
}

func (i *Informer[T]) isDone() bool { return isClosed(i.state.done) }

// Handle registers h, before Run or while it runs. The handler is first called once for each object
// in the local store and then for each change. A separate goroutine makes the calls, until Run ends
// or the registration is removed.
func (i *Informer[T]) Handle(h Handler[T], o *HandlerOptions) *Registration[T] {
	r := i.register(o)
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	if !i.isDone() {
		i.state.handlers.Go(func() {
			for c := range r.changes(context.Background()) {
				h.call(c)
			}
		})
	}
	return r
}

// Changes is the iterator form of [Informer.Handle]: it yields the objects of the local
// store and then the changes, until ctx or the informer's Run ends. It may be called before
// Run. o configures the queue of changes that the loop has not consumed yet.
func (i *Informer[T]) Changes(ctx context.Context, o *HandlerOptions) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		r := i.register(o)
		defer r.Remove()
		r.changes(ctx)(yield)
	}
}

// register adds a registration whose queue starts with the current content of the store.
func (i *Informer[T]) register(o *HandlerOptions) *Registration[T] {
	if o == nil {
		o = &HandlerOptions{}
	}
	r := &Registration[T]{
		informer: i, queue: newHandlerQueue[T](max(o.MaxPending, 0)), resync: cmp.Or(o.Resync, i.Resync),
		removed: make(chan struct{}), synced: make(chan struct{}),
	}
	i.init()
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	for item := range i.Snapshot().Items() {
		r.queue.push(notification[T]{key: item.Key, now: item, initial: true})
	}
	if i.state.isSynced {
		r.markSynced()
	}
	i.state.registrations[r] = struct{}{}
	if r.resync > 0 && !i.isDone() {
		r.timer = time.AfterFunc(r.resync, r.resyncNow)
	}
	return r
}

// Track returns a Store that reads and writes through s, and whose writes are own writes of i: the
// next read of i contains them. s must be the collection that i follows, perhaps at another server,
// or a client.Subresource of it. So s may be the Source of i.
//
//	writes := typed.Collection[Flag]{Store: flags.Track(remote)}
//
// In a call of package controller, a write returns as soon as s has performed it, and the next call
// for the same key starts when i has it. The same holds for any context of [WithWriteLog].
//
// With other contexts, a write returns when i has it, or after [OwnWriteTimeout] with an error of
// code NotYet, together with the object. While Run is not active, it does not wait. A handler with
// [HandlerOptions.MaxPending] must use a context of WithWriteLog.
//
// A write that fails may have been performed nevertheless, unless its error says that it was
// refused. i then waits for the newest version of its Source, too. If Conflate is set, the next
// read of i may lack a write that another one supersedes.
//
// If the response to a delete has no version, as from a Kubernetes API server, i requests the
// newest version. It does not need to if Preconditions.Version names the deleted object.
func (i *Informer[T]) Track(s listwatch.Store) listwatch.Store {
	i.init()
	return &tracked[T]{Store: s, informer: i}
}

// List is like [Indexer.List]. If CheckLag returns an error, List returns it.
func (i *Informer[T]) List(q listwatch.Query) ([]T, error) {
	if err := i.CheckLag(); err != nil {
		return nil, err
	}
	return i.localStore.List(q)
}

// ByIndex is like [Indexer.ByIndex]. If CheckLag returns an error, ByIndex returns it.
func (i *Informer[T]) ByIndex(name, value string) ([]T, error) {
	if err := i.CheckLag(); err != nil {
		return nil, err
	}
	return i.localStore.ByIndex(name, value)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// An informerSink is an Informer with the methods of [Sink], for its own Reflector.
type informerSink[T any] Informer[T]

// Replace implements Sink.
func (i *informerSink[T]) Replace(items []*Item[T], version listwatch.Version) error {
	// Run publishes the progress after each Pop, but an empty list leaves nothing to pop.
	defer (*Informer[T])(i).publishProgress()
	return i.state.fifo.Replace(items, version)
}

// Patch implements Patcher.
func (i *informerSink[T]) Patch(items []*Item[T], gone []listwatch.Key, version listwatch.Version) error {
	defer (*Informer[T])(i).publishProgress()
	return i.state.fifo.Patch(items, gone, version)
}

// Apply implements Sink.
func (i *informerSink[T]) Apply(changes ...Delta[T]) error {
	err := i.state.fifo.Apply(changes...)
	if i.state.fifo.Len() == 0 {
		// Run publishes the progress after each Pop, but changes that cancel out leave nothing to
		// pop.
		(*Informer[T])(i).publishProgress()
	}
	return err
}

// Bookmark implements Sink.
func (i *informerSink[T]) Bookmark(version listwatch.Version) error {
	defer (*Informer[T])(i).publishProgress()
	return i.state.fifo.Bookmark(version)
}

// publishProgress updates the store's version, marks the informer as synced, and wakes the
// callers that wait for a version.
func (i *Informer[T]) publishProgress() {
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	version, restarts, idle := i.state.fifo.progress()
	i.setVersion(version)
	i.state.restarts = restarts
	if idle {
		i.state.persist.drained()
	}
	if !i.state.isSynced && i.state.fifo.HasSynced() {
		i.state.isSynced = true
		i.compact()
		for r := range i.state.registrations {
			r.markSynced()
		}
	}
	reached := i.progress()
	i.state.waiters = slices.DeleteFunc(i.state.waiters, func(w *waiter) bool { return w.notify(reached) })
}

// handleDeltas stores the changes of one key and queues them for the handlers. It always
// returns nil.
func (i *Informer[T]) handleDeltas(deltas Deltas[T], _ bool) error {
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	for d := range deltas.All() {
		i.apply(d)
	}
	return nil
}

// apply stores one change and queues it for the handlers. The caller must hold i.state.mu.
func (i *Informer[T]) apply(d Delta[T]) {
	key := d.Item.Key
	old, _ := i.Item(key)
	n := notification[T]{key: key, old: old, now: d.Item, initial: d.Initial}
	switch {
	case d.Type == DeltaDeleted:
		if old == nil {
			return
		}
		i.set(key, nil)
		i.state.mutations.Track(old, nil)
		n.deleted, n.finalStateUnknown, n.deletedAt = true, d.FinalStateUnknown, d.Item.Version
	case old != nil && old.Version == d.Item.Version && reflect.DeepEqual(old.Value, d.Item.Value):
		// A list repeated a state that is already stored. Values are compared, because a new
		// database may reuse the versions of the old one.
		return
	default:
		i.state.mutations.Track(old, d.Item)
		if err := i.set(key, d.Item); err != nil {
			panic(err) // an index function of the program panicked
		}
	}
	for r := range i.state.registrations {
		r.queue.push(n)
	}
}

// yield blocks while the queue of any handler with MaxPending is full.
func (i *Informer[T]) yield(ctx context.Context) {
	i.state.mu.Lock()
	var slow []*Registration[T]
	for r := range i.state.registrations {
		if r.queue.maxPending > 0 && r.queue.len() >= r.queue.maxPending {
			slow = append(slow, r)
		}
	}
	i.state.mu.Unlock()
	for _, r := range slow {
		r.queue.waitForRoom(ctx, r.removed)
	}
}

// Stats are the sizes of an Informer at one moment.
type Stats struct {
	// Objects is the number of objects in the local store, and Version is the version of the store.
	Objects int
	Version listwatch.Version
	// Queued is the number of objects with changes that are not in the local store yet.
	Queued int
	// Pending is the number of notifications that the handlers have not received yet.
	Pending int
	// Synced is the result of [Informer.HasSynced], and Lag the result of [Informer.Lag].
	Synced bool
	Lag    Lag
}

// Stats returns the current sizes of i.
func (i *Informer[T]) Stats() Stats {
	i.init()
	s := Stats{Objects: i.Len(), Version: i.Version(), Queued: i.state.fifo.Len(), Synced: i.HasSynced(), Lag: i.Lag()}
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	for r := range i.state.registrations {
		s.Pending += r.Pending()
	}
	return s
}
