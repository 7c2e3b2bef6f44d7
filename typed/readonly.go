package typed

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
)

// ReadOnly returns s as a Store whose writes fail with an error of code Unsupported. With it a
// [Collection] reads from a watchcache.Cache, a relay, or any other Source. Its Get is a list of
// one object.
func ReadOnly(s listwatch.Source) listwatch.Store { return readOnly{s} }

type readOnly struct{ listwatch.Source }

// Unwrap returns the Source.
func (r readOnly) Unwrap() listwatch.Source { return r.Source }

func (r readOnly) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	page, err := r.List(ctx, listwatch.Query{Selection: listwatch.Selection{Namespace: key.Namespace, Name: key.Name}})
	if err != nil {
		return nil, err
	}
	for _, o := range page.Items {
		if o.Key == key {
			return o, nil
		}
	}
	return nil, &listwatch.Error{Code: listwatch.NotFound, Op: "get", Message: fmt.Sprintf("object %q not found", key)}
}

func (r readOnly) Create(context.Context, []byte) (*listwatch.Object, error) {
	return nil, r.refused("create")
}

func (r readOnly) Replace(context.Context, listwatch.Key, []byte) (*listwatch.Object, error) {
	return nil, r.refused("replace")
}

func (r readOnly) Delete(context.Context, listwatch.Key, listwatch.Preconditions) (*listwatch.Object, error) {
	return nil, r.refused("delete")
}

func (r readOnly) refused(op string) error {
	return &listwatch.Error{Code: listwatch.Unsupported, Op: op, Message: fmt.Sprintf("the %T is read-only", r.Source)}
}
