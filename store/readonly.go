package store

import (
	"context"
	"net/http"

	"github.com/listwatch/listwatch"
)

// NewReadOnly returns a collection that shows the objects of s and refuses writes with status 405.
// With it, a relay or another Source can be served wherever a Collection is needed, also in part;
// see [Collection.Within].
func NewReadOnly(spec CollectionSpec, s listwatch.Source) *Collection {
	return New(spec, readOnly{s})
}

// A readOnly is a Backend that refuses writes.
type readOnly struct{ listwatch.Source }

// Unwrap returns the Source, so that its description and its sizes are found.
func (r readOnly) Unwrap() listwatch.Source { return r.Source }

func (r readOnly) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	if getter, ok := r.Source.(interface {
		Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error)
	}); ok {
		return getter.Get(ctx, key)
	}
	only := listwatch.Selection{Namespace: key.Namespace, Name: key.Name}
	page, err := r.List(ctx, listwatch.Query{Selection: only})
	if err != nil || len(page.Items) == 0 {
		return nil, err
	}
	return page.Items[0], nil
}

func (readOnly) Commit(context.Context, Change) (*listwatch.Object, error) { return nil, errReadOnly() }

// Renew implements [Renewer], so that no Renewer behind r is found.
func (readOnly) Renew(context.Context, *listwatch.Object) error { return errReadOnly() }

func errReadOnly() error {
	return &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed",
		Message: "this server only shows the objects; write to where they come from",
	}
}
