package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A Collection reads and writes the objects behind the URL of Remote as values of T. To follow
// them, use Remote, or an informer over it. A Collection is safe for concurrent use.
//
// The server is a Kubernetes API server, package kubeapi, package crudserver, or another server
// with the same verbs. T is any type that encoding/json can encode and decode, with the metadata of
// Kubernetes in the member "metadata": a struct that embeds [listwatch.Metadata] with the tag
// `json:"metadata"`, a type of Kubernetes, or [encoding/json.RawMessage]. Kubernetes requires kind
// and apiVersion in custom resources, so a type T for custom resources must have these members.
//
// Errors are [*listwatch.Error] with the code, reason and causes of the server's Status, such as
// NotFound, AlreadyExists, Conflict, or Invalid. Errors of the context are returned unchanged. A
// write that fails with Unavailable may have been performed nevertheless. The same holds for a
// write that fails with Unsupported because the server redirected it to a GET, for example with
// 303.
type Collection[T any] struct {
	// Remote is the collection. Its URL names all objects or, in a Kubernetes API, the objects of
	// one namespace. Selectors in its query apply to List only.
	Remote *Remote
	// PlainPaths controls the paths of objects. If it is false and the path of the URL ends like a
	// collection of a Kubernetes API (/api/VERSION/PLURAL or /apis/GROUP/VERSION/PLURAL), objects
	// have paths as in Kubernetes, such as /api/v1/namespaces/NAMESPACE/pods/NAME. If it is true,
	// or for any other URL, an object is at URL/NAME or URL/NAMESPACE/NAME.
	PlainPaths bool
}

// Get returns the newest value at key.
func (c Collection[T]) Get(ctx context.Context, key listwatch.Key) (T, error) {
	return decodeValue[T](c.exchange(ctx, objectRequest{op: "get", method: http.MethodGet, key: key}))
}

// List returns the selected values in the order of the server, and the version of this state. If
// q.Limit is set, List returns only one page; use List of Remote to read all pages.
func (c Collection[T]) List(ctx context.Context, q listwatch.Query) ([]T, listwatch.Version, error) {
	page, err := c.Remote.List(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	values := make([]T, len(page.Items))
	for i, o := range page.Items {
		if values[i], err = listwatch.Decode[T](o); err != nil {
			return nil, 0, err
		}
	}
	return values, page.Version, nil
}

// Create writes a new value and returns it with the metadata that the server has set.
func (c Collection[T]) Create(ctx context.Context, value T) (T, error) {
	var none T
	data, err := encodeValue(value)
	if err != nil {
		return none, err
	}
	o, err := listwatch.ParseObject(data)
	if err != nil {
		return none, err
	}
	return decodeValue[T](c.exchange(ctx, objectRequest{op: "create", method: http.MethodPost, key: o.Key, body: o.Data}))
}

// maxUpdateTries limits the retries at a server that reports a conflict for every write.
const maxUpdateTries = 100

// Update reads the value at key, calls the function change, which modifies the value, and writes
// the result. If another writer was faster, Update does all of this again, at most a hundred times.
// If that function returns an error, nothing is written and Update returns the error unchanged. If
// the function modifies nothing, nothing is written and Update returns the value that it read.
//
// Members that T does not have are kept, because Update writes the object that it read, with only
// the modifications of the function. A modified array replaces the old array as a whole.
func (c Collection[T]) Update(ctx context.Context, key listwatch.Key, change func(*T) error) (T, error) {
	for try := 1; ; try++ {
		o, overtaken, err := c.updateOnce(ctx, key, change)
		if !overtaken || try == maxUpdateTries {
			return decodeValue[T](o, err)
		}
		// The first retry does not wait. Later retries wait a random time, so that writers that
		// conflicted do not meet again.
		longest := min(time.Second, 10*time.Millisecond<<min(try, 7))
		if try > 1 && !reflector.Sleep(ctx, rand.N(longest)) {
			return decodeValue[T](nil, ctx.Err())
		}
	}
}

// updateOnce makes one try of an Update. overtaken is true if another writer was faster.
func (c Collection[T]) updateOnce(ctx context.Context, key listwatch.Key, change func(*T) error) (o *listwatch.Object, overtaken bool, err error) {
	old, err := c.exchange(ctx, objectRequest{op: "get", method: http.MethodGet, key: key})
	if err != nil {
		return nil, false, err
	}
	value, err := listwatch.Decode[T](old)
	if err != nil {
		return nil, false, err
	}
	before, err := encodeValue(value)
	if err != nil {
		return nil, false, err
	}
	if err := change(&value); err != nil {
		return nil, false, err
	}
	after, err := encodeValue(value)
	if err != nil {
		return nil, false, err
	}
	data, err := rawjson.Rebase(old.Data, before, after)
	if err == nil && bytes.Equal(data, old.Data) {
		return old, false, nil
	}
	if err == nil {
		// Restore the version that was read, because the function may have modified or removed it.
		// With this version the server detects that another writer was faster.
		data, err = rawjson.Rebase(data, []byte(`{"metadata":{}}`), fmt.Appendf(nil, `{"metadata":{"resourceVersion":"%d"}}`, old.Version))
	}
	if err != nil {
		return nil, false, &listwatch.Error{Code: listwatch.Corrupt, Op: "update", Err: err}
	}
	o, err = c.exchange(ctx, objectRequest{op: "update", method: http.MethodPut, key: key, body: data})
	return o, errors.Is(err, listwatch.Conflict), err
}

// Delete deletes the object at key. If version is not zero, the object is deleted only if it has
// this version; otherwise the error has code Conflict. An object with finalizers is only marked,
// and deleted when its last finalizer is removed.
func (c Collection[T]) Delete(ctx context.Context, key listwatch.Key, version listwatch.Version) error {
	r := objectRequest{op: "delete", method: http.MethodDelete, key: key}
	if version != 0 {
		r.body = fmt.Appendf(nil, `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"%d"}}`, version)
	}
	_, err := c.exchange(ctx, r)
	return err
}

func (c Collection[T]) exchange(ctx context.Context, r objectRequest) (*listwatch.Object, error) {
	r.plainPaths = c.PlainPaths
	return c.Remote.exchange(ctx, r)
}

// decodeValue takes the results of a call and decodes the object, unless the call failed.
func decodeValue[T any](o *listwatch.Object, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return listwatch.Decode[T](o)
}

// encodeValue returns the JSON of value.
func encodeValue(value any) ([]byte, error) {
	data, err := rawjson.Encode(value)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("encode %T", value), Err: err}
	}
	return data, nil
}
