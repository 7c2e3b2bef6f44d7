package kubetest

import (
	"context"
	"io"

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

// retire ends all watches and refuses new requests, for a resource that no longer exists.
func (b *backend) retire() {
	b.retired = true
	b.Source.Fail(&listwatch.Error{Code: listwatch.NotFound, Message: "the resource no longer exists"})
	b.Source.Cut(io.EOF)
}

// List implements [listwatch.Source].
func (b *backend) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return b.Source.List(ctx, b.faults.age(q))
}

// Watch implements [listwatch.Source].
func (b *backend) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return b.Source.Watch(ctx, q)
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
