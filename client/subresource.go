package client

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
)

// A Subresource is a Store of one part of each object of Remote, in a Kubernetes API server or
// package kubeapi. The most important part is "status". If a resource has the subresource status,
// only writes to it change the status of an object, and they change nothing else. All other writes
// ignore the status.
//
//	statuses := typed.Collection[App]{Store: client.Subresource{Remote: apps, Name: "status"}}
//	app, err := statuses.Update(ctx, key, func(a *App) error { a.Status.Ready = 3; return nil })
//
// Get, Replace and Patch use the subresource. List and Watch return whole objects. Create and
// Delete fail with code Unsupported, because a subresource exists as long as its object.
type Subresource struct {
	Remote *Remote
	// Name is the last part of the path, such as "status" or "scale".
	Name string
}

var (
	_ listwatch.Store   = Subresource{}
	_ listwatch.Patcher = Subresource{}
	_ listwatch.Patcher = (*Remote)(nil)
)

// List lists the objects of Remote.
func (s Subresource) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return s.Remote.List(ctx, q)
}

// Watch watches the objects of Remote.
func (s Subresource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return s.Remote.Watch(ctx, q)
}

// Unwrap returns Remote.
func (s Subresource) Unwrap() listwatch.Source { return s.Remote }

// Get returns the subresource of the object at key. If it is "status", this is the whole object.
func (s Subresource) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	return s.exchange(ctx, objectRequest{op: "get", method: http.MethodGet, key: key})
}

// Replace implements [listwatch.Writer].
func (s Subresource) Replace(ctx context.Context, key listwatch.Key, data []byte) (*listwatch.Object, error) {
	return s.exchange(ctx, objectRequest{
		op: "replace", method: http.MethodPut, key: key, body: data, contentType: s.Remote.bodyType(),
	})
}

// Patch implements [listwatch.Patcher].
func (s Subresource) Patch(ctx context.Context, key listwatch.Key, p listwatch.Patch) (*listwatch.Object, error) {
	return s.exchange(ctx, patchRequest(key, p))
}

// Create returns an error of code Unsupported.
func (s Subresource) Create(context.Context, []byte) (*listwatch.Object, error) {
	return nil, s.unsupported("create")
}

// Delete returns an error of code Unsupported.
func (s Subresource) Delete(
	context.Context, listwatch.Key, listwatch.Preconditions,
) (*listwatch.Object, error) {
	return nil, s.unsupported("delete")
}

func (s Subresource) exchange(ctx context.Context, q objectRequest) (*listwatch.Object, error) {
	q.subresource = s.Name
	return s.Remote.exchange(ctx, q)
}

func (s Subresource) unsupported(op string) error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Op: op,
		Message: "the subresource " + s.Name + " of an object can only be read, replaced and patched",
	}
}
