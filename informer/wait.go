package informer

import (
	"context"

	"github.com/listwatch/listwatch"
)

// A waiter is told once that the store has come to a version.
type waiter struct {
	version listwatch.Version
	reached chan struct{}
}

// tell reports whether w has what it waits for, and lets it go on.
func (w *waiter) notify(version listwatch.Version, synced bool) bool {
	if !synced || version < w.version {
		return false
	}
	close(w.reached)
	return true
}

// HasSynced reports whether the first state is in the store and every handler that is registered now has been called for, and has returned from,
// the state that it began with.
func (i *Informer[T]) HasSynced() bool {
	registrations, synced := i.currentRegistrations()
	for _, r := range registrations {
		synced = synced && r.HasSynced()
	}
	return synced
}

// registered returns the registrations of now, and whether the store has the first state.
func (i *Informer[T]) currentRegistrations() (all []*Registration[T], synced bool) {
	i.init()
	i.mu.Lock()
	defer i.mu.Unlock()
	for r := range i.registrations {
		all = append(all, r)
	}
	return all, i.isSynced
}

// WaitForSync waits until the first state is in the store, and every handler that was registered before the call has returned from what it
// began with. It returns ctx.Err() where ctx ends first, an error of code Unavailable where Run does, and one of code Invalid where there is
// no Source. A handler must not wait for its own sync.
//
// A Source that can't be reached, or holds what can't be decoded, is tried again until Run ends: Trace tells why it takes long.
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

// await waits for done or removed, which count before all else.
func (i *Informer[T]) await(ctx context.Context, op string, done, removed <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-removed:
		return nil
	default:
	}
	if i.Source == nil {
		return errNoSource(op)
	}
	select {
	case <-done:
		return nil
	case <-removed:
		return nil
	case <-i.done:
		return &listwatch.Error{Code: listwatch.Unavailable, Op: op, Message: "the informer has ended"}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitForVersion waits until the local store has everything up to v: who has written at version v and waits for it reads what it wrote, or
// something newer. Zero: until the store has its first state. It returns ctx.Err() where ctx ends first, an error of code Unavailable where Run
// does, and one of code Invalid where there is no Source. Where versions begin anew, one of before is reached when the new ones pass it.
//
// A write outside of the selection brings no event. It is known to have been passed at the next event or bookmark, which servers send about
// once a minute. Where a foreign writer changes several objects in one transaction, they share a version, which is reached with those of them
// that came together: a network may have torn them apart.
func (i *Informer[T]) WaitForVersion(ctx context.Context, v listwatch.Version) error {
	i.init()
	w := &waiter{version: v, reached: make(chan struct{})}
	i.mu.Lock()
	if !w.notify(i.store.Version(), i.isSynced) {
		i.waiters = append(i.waiters, w)
	}
	i.mu.Unlock()
	select {
	case <-w.reached:
		return nil
	default:
	}
	defer i.removeWaiter(w)
	return i.await(ctx, "wait for version "+v.String(), w.reached, nil)
}

// forget removes w, which may have been told.
func (i *Informer[T]) removeWaiter(w *waiter) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, other := range i.waiters {
		if other == w {
			i.waiters = append(i.waiters[:n], i.waiters[n+1:]...)
			return
		}
	}
}

func errNoSource(op string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Op: op, Message: "the informer has no Source"}
}
