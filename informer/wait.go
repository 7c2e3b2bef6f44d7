package informer

import (
	"context"
	"slices"

	"github.com/listwatch/listwatch"
)

// A waiter waits for the store to reach a version and, if condition is not nil, to fulfill it.
type waiter struct {
	version   listwatch.Version
	condition func() bool
	reached   chan struct{}
}

// notify reports whether the store has synced and has reached the state that w waits for. If so, it
// closes w.reached. version is the version of the store.
func (w *waiter) notify(version listwatch.Version, synced bool) bool {
	if !synced || version < w.version || w.condition != nil && !w.condition() {
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

// WaitForSync blocks until the store holds the initial state, and [Registration.HasSynced]
// returns true for every handler that was registered before the call. It returns ctx.Err()
// if ctx ends first, an error of code Unavailable if Run returns first, and an error of code
// Invalid if there is no Source. A handler must not wait for its own sync.
//
// The informer retries until Run ends if the Source is unreachable or sends objects that
// cannot be decoded. Trace reports these failures.
func (i *Informer[T]) WaitForSync(ctx context.Context) error {
	if err := i.WaitForVersion(ctx, 0); err != nil {
		return err
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
// source start over (a new epoch), an old version counts as reached when the new versions exceed
// it.
//
// A write outside the selection produces no event. Its version is reached at the next event
// or bookmark; servers send bookmarks about once a minute. If another program writes
// several objects in one transaction, they share a version. That version is reached with
// the first batch of these objects; if the network splits the batch, the remaining objects
// may follow.
//
// With [listwatch.Query.Conflate], v may be reached while a newer state of an object, which
// supersedes the state at v, has not arrived yet. Any bookmark shows that everything has arrived.
func (i *Informer[T]) WaitForVersion(ctx context.Context, v listwatch.Version) error {
	return i.waitFor(ctx, "wait for version "+v.String(), &waiter{version: v, reached: make(chan struct{})})
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
	w := &waiter{reached: make(chan struct{}), condition: func() bool { return condition(i.Get(key)) }}
	return i.waitFor(ctx, "wait for "+key.String(), w)
}

// waitFor blocks until w is notified.
func (i *Informer[T]) waitFor(ctx context.Context, op string, w *waiter) error {
	i.init()
	i.state.mu.Lock()
	if !w.notify(i.Version(), i.state.isSynced) {
		i.state.waiters = append(i.state.waiters, w)
	}
	i.state.mu.Unlock()
	if isClosed(w.reached) {
		return nil
	}
	defer i.removeWaiter(w)
	return i.await(ctx, op, w.reached, nil)
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
