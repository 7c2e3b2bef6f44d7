package informer

import (
	"context"
	"fmt"
	"slices"

	"github.com/listwatch/listwatch"
)

// A waiter waits for the store to reach a version and, if condition is not nil, to fulfill it.
type waiter struct {
	version listwatch.Version
	// restarts is the number of times that the versions had started over when the Source had
	// version. If they have started over again since, any version of the new state suffices.
	restarts  uint32
	condition func() bool
	reached   chan struct{}
}

// newWaiter returns a waiter for a version that the Source has now.
func (i *Informer[T]) newWaiter(v listwatch.Version) *waiter {
	_, restarts, _ := i.state.fifo.progress()
	return &waiter{version: v, restarts: restarts, reached: make(chan struct{})}
}

// A progress is the position of an informer.
type progress struct {
	version  listwatch.Version // of the local store
	restarts uint32
	synced   bool
}

// notify reports whether the informer has reached the state that w waits for. If so, it closes
// w.reached.
func (w *waiter) notify(p progress) bool {
	if !p.synced || p.restarts < w.restarts {
		return false
	}
	hasRestarted := p.restarts > w.restarts && w.version != 0
	if hasRestarted && p.version == 0 { // the new state is not stored yet
		return false
	}
	if !hasRestarted && (p.version < w.version || w.condition != nil && !w.condition()) {
		return false
	}
	close(w.reached)
	return true
}

// HasSynced reports whether the store holds the initial state, and [Registration.HasSynced]
// returns true for every registered handler.
func (i *Informer[T]) HasSynced() bool {
	registrations, synced := i.currentRegistrations()
	for _, r := range registrations {
		synced = synced && r.HasSynced()
	}
	return synced
}

// currentRegistrations returns the registrations and whether the store holds the initial
// state.
func (i *Informer[T]) currentRegistrations() (all []*Registration[T], synced bool) {
	i.init()
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	for r := range i.state.registrations {
		all = append(all, r)
	}
	return all, i.state.isSynced
}

// WaitForSync blocks until the store holds the initial state, and [Registration.HasSynced] returns
// true for every handler that was registered before the call. With [Informer.MaxLag], it also waits
// until the lag is known. It returns ctx.Err() if ctx ends first, an error of code Unavailable if
// Run returns first, and an error of code Invalid if there is no Source. A handler must not wait
// for its own sync.
//
// The informer retries until Run ends if the Source is unreachable or sends objects that
// cannot be decoded. Trace reports these failures.
func (i *Informer[T]) WaitForSync(ctx context.Context) error {
	if err := i.WaitForVersion(ctx, 0); err != nil {
		return err
	}
	if i.MaxLag > 0 {
		if err := i.await(ctx, "wait for the lag", i.state.lag.known, nil); err != nil {
			return err
		}
	}
	registrations, _ := i.currentRegistrations()
	for _, r := range registrations {
		if err := i.await(ctx, "wait for the sync", r.synced, r.removed); err != nil {
			return err
		}
	}
	return nil
}

// await blocks until done or removed is closed, and then returns nil. It returns an error
// if ctx ends or Run returns first. If done or removed is already closed, await returns nil
// even if ctx has ended.
func (i *Informer[T]) await(ctx context.Context, op string, done, removed <-chan struct{}) error {
	if isClosed(done) || isClosed(removed) {
		return nil
	}
	if i.Source == nil {
		return errNoSource(op)
	}
	select {
	case <-done:
		return nil
	case <-removed:
		return nil
	case <-i.state.done:
		return &listwatch.Error{Code: listwatch.Unavailable, Op: op, Message: "the informer's Run has returned"}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitForVersion blocks until the local store holds everything up to v. A caller that waits for the
// version of its own write then reads that write or a newer state. If v is zero, WaitForVersion
// waits for the initial state. It returns ctx.Err() if ctx ends first, an error of code Unavailable
// if Run returns first, and an error of code Invalid if there is no Source. If the versions of the
// source start over during the call (a new epoch), the version counts as reached when the new state
// is stored.
//
// A write outside the selection produces no event. If the version is not reached within a moment,
// the informer therefore opens a second, short watch, which ends with a bookmark after about a
// second. If the Source sends none, the informer lists it and compares the state.
//
// If another program writes several objects in one transaction, they share a version. That
// version is reached with the first batch of these objects; if the network splits the batch, the
// remaining objects may follow.
//
// With Conflate, the store may reach v before it has received a newer state of an object, which
// replaces the state at v. A bookmark shows that everything has arrived.
func (i *Informer[T]) WaitForVersion(ctx context.Context, v listwatch.Version) error {
	i.init()
	return i.waitFor(ctx, "wait for version "+v.String(), i.newWaiter(v))
}

// WaitFor blocks until the local store holds the initial state and condition returns true for the
// object at key; ok is false if there is none. condition must be quick, and must not use i. WaitFor
// returns the errors of WaitForVersion.
//
// Use it after a delete whose response has no version, as from a Kubernetes API server. The
// condition is then !ok || value.UID != uid, with the uid of the object that was deleted.
func (i *Informer[T]) WaitFor(
	ctx context.Context, key listwatch.Key, condition func(value T, ok bool) bool,
) error {
	i.init()
	w := i.newWaiter(0)
	w.condition = func() bool { return condition(i.Get(key)) }
	return i.waitFor(ctx, "wait for "+key.String(), w)
}

// waitFor blocks until w is notified.
func (i *Informer[T]) waitFor(ctx context.Context, op string, w *waiter) error {
	if i.enlist(w); isClosed(w.reached) {
		return nil
	}
	defer i.removeWaiter(w)
	if w.version != 0 {
		defer i.startProbes(ctx, w)()
	}
	return i.await(ctx, op, w.reached, nil)
}

// enlist notifies w now or when the informer reaches the state that w waits for.
func (i *Informer[T]) enlist(w *waiter) {
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	if !w.notify(i.progress()) {
		i.state.waiters = append(i.state.waiters, w)
	}
}

func (i *Informer[T]) currentProgress() progress {
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	return i.progress()
}

// progress returns the position of i. The caller must hold i.state.mu.
func (i *Informer[T]) progress() progress {
	return progress{version: i.Version(), restarts: i.state.restarts, synced: i.state.isSynced}
}

// setEpoch records the epoch of a new state.
func (i *Informer[T]) setEpoch(epoch string) {
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	i.state.epoch = epoch
}

// isSameEpoch reports whether a version of the given epoch can be compared with the informer's
// versions.
func (i *Informer[T]) isSameEpoch(epoch string) bool {
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	return epoch == "" || i.state.epoch == "" || epoch == i.state.epoch
}

// removeWaiter removes w from i.state.waiters, unless publishProgress has already removed it.
func (i *Informer[T]) removeWaiter(w *waiter) {
	i.state.mu.Lock()
	defer i.state.mu.Unlock()
	i.state.waiters = slices.DeleteFunc(i.state.waiters, func(other *waiter) bool { return other == w })
}

func errNoSource(op string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: op, Message: "the informer has no Source"}
}

// awaitWrites blocks until i has received w.
func (i *Informer[T]) awaitWrites(ctx context.Context, w writes) error {
	const op = "wait for own writes"
	all := make([]*waiter, 0, 1+len(w.deleted))
	all = append(all, &waiter{version: w.version, restarts: w.restarts, reached: make(chan struct{})})
	for _, d := range w.deleted {
		all = append(all, &waiter{
			version: d.before, restarts: w.restarts, reached: make(chan struct{}),
			condition: func() bool { item, ok := i.Item(d.key); return !ok || item.Version > d.before },
		})
	}
	if w.unknown {
		v, err := i.newest(ctx)
		if err != nil {
			return notYet(ctx, err, op, "the newest version of the source is not known")
		}
		all = append(all, i.newWaiter(v))
	}
	for _, w := range all {
		if err := i.waitFor(ctx, op, w); err != nil {
			text := fmt.Sprintf("the informer has reached version %d, want %d", i.Version(), w.version)
			return notYet(ctx, err, op, text)
		}
	}
	return nil
}

// newest returns a version that covers all writes that were acknowledged before the call.
func (i *Informer[T]) newest(ctx context.Context) (listwatch.Version, error) {
	page, err := i.Source.List(ctx, listwatch.Query{Selection: i.Selection, Limit: 1})
	return page.Version, err
}
