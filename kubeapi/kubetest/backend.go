package kubetest

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/store"
)

// A backend is the backend of a collection, with the faults of the test.
type backend struct {
	*listwatchtest.Source // fails lists and watches
	store.Backend

	faults *Faults
	// retired is true if the resource no longer exists. It is guarded by api.mu.
	retired bool
	// last is the version of the last write before the resource was removed. It is nil before that.
	last atomic.Pointer[listwatch.Version]
	// finalizers is true if finalizers delay a delete.
	finalizers bool
	// written is called after each write with the object, or with its last state if deleted is
	// true.
	written func(o *listwatch.Object, deleted bool)
}

func newBackend(b store.Backend, f *Faults) *backend {
	own := &backend{Source: listwatchtest.New(b), Backend: b, faults: f, finalizers: true}
	f.track(own.Source)
	return own
}

// endDelay is the time for which the watches of a removed resource stay open to receive their last
// events.
const endDelay = 100 * time.Millisecond

// retire refuses new requests, because the resource no longer exists. After endDelay, it ends all
// watches. By then they have received the deletions of the last objects, as in a cluster.
func (b *backend) retire() {
	b.retired = true
	b.Source.Fail(&listwatch.Error{Code: listwatch.NotFound, Message: "the resource no longer exists"})
	// The store is in memory, so this cannot fail.
	page, _ := b.Backend.List(context.Background(), listwatch.Query{Limit: 1})
	b.last.Store(&page.Version)
	time.AfterFunc(endDelay, func() { b.Source.Cut(io.EOF) })
}

// A lastWatcher is a watch that ends when its resource is removed. It drops later events, because
// they belong to a new resource with the same name.
type lastWatcher struct {
	listwatch.Watcher
	last *atomic.Pointer[listwatch.Version] // see backend.last
}

// Next implements [listwatch.Watcher].
func (w lastWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	last := w.last.Load()
	if err != nil || last == nil {
		return n, err
	}
	if i := slices.IndexFunc(dst[:n], func(e listwatch.Event) bool { return e.Version > *last }); i >= 0 {
		n = i
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// List implements [listwatch.Source].
func (b *backend) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return b.Source.List(ctx, b.faults.age(q))
}

// Watch implements [listwatch.Source].
func (b *backend) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := b.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return lastWatcher{w, &b.last}, nil
}

// Commit implements [store.Backend].
func (b *backend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if !b.finalizers && isMark(c) {
		c.New = nil
	}
	o, err := b.Backend.Commit(ctx, c)
	if err != nil {
		return nil, err
	}
	b.faults.wrote(o.Version)
	b.written(o, c.New == nil)
	return o, nil
}

// Unwrap returns the backend without faults; see [store.Backend].
func (b *backend) Unwrap() listwatch.Source { return b.Backend }

// isMark reports whether c is a delete that finalizers delay.
func isMark(c store.Change) bool {
	return c.Old != nil && c.New != nil && !rules.IsBeingDeleted(c.Old.Data) && rules.IsBeingDeleted(c.New.Seal(1).Data)
}
