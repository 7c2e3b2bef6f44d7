package typed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/reflector"
)

// A Collection reads and writes the objects of Store as values of T. It is also a Source of these
// objects, so it can be served and followed. It is safe for concurrent use if Store is.
//
// T is any type that encoding/json can encode and decode, with the metadata of Kubernetes in the
// member "metadata": a struct that embeds [listwatch.Metadata] with the tag `json:"metadata"`, a
// type of Kubernetes, or [encoding/json.RawMessage]. Kubernetes requires kind and apiVersion in
// custom resources, so for a Kubernetes API server T must have these members, too.
//
// The objects of Store must be JSON; see [listwatch.Description.Encoding].
//
// Methods return the errors of Store and of the context unchanged. If an object cannot be
// decoded, the error has code Corrupt. If a value cannot be encoded, the error has code Invalid.
type Collection[T any] struct {
	// Store holds the objects, for example a store.Collection or a client.Remote. Informers and
	// relays should follow Store instead of the Collection: they follow the connections of a
	// Remote directly, but not through a Collection.
	Store listwatch.Store
}

var (
	_ listwatch.Source = Collection[any]{}
	_ listwatch.Store  = readOnly{}
)

// List implements [listwatch.Source]. It returns JSON; Items returns values.
func (c Collection[T]) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return c.Store.List(ctx, q)
}

// Watch implements [listwatch.Source]. It returns JSON; Events returns values.
func (c Collection[T]) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return c.Store.Watch(ctx, q)
}

// Unwrap returns Store.
func (c Collection[T]) Unwrap() listwatch.Source { return c.Store }

// Get returns the newest value at key. If there is none, the error has code NotFound.
func (c Collection[T]) Get(ctx context.Context, key listwatch.Key) (T, error) {
	return decode[T](c.Store.Get(ctx, key))
}

// Items returns the selected values in the order of Store, and the version of this state. If
// q.Limit is set, Items returns only the first page; use List to read further pages.
func (c Collection[T]) Items(ctx context.Context, q listwatch.Query) ([]T, listwatch.Version, error) {
	page, err := c.Store.List(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	items := make([]T, len(page.Items))
	for i, o := range page.Items {
		if items[i], err = listwatch.Decode[T](o); err != nil {
			return nil, 0, err
		}
	}
	return items, page.Version, nil
}

// An Event is a [listwatch.Event] with its object decoded.
type Event[T any] struct {
	// Type, Initial and Version have the same meaning as in listwatch.Event.
	Type    listwatch.EventType
	Initial bool
	Version listwatch.Version
	// Object is the zero T for bookmarks.
	Object T
}

// Events watches the selected values until ctx ends or the caller stops the iteration. If
// the watch fails, the error is the last element. If it ends cleanly, there is no error.
func (c Collection[T]) Events(ctx context.Context, q listwatch.Query) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		w, err := c.Store.Watch(ctx, q)
		if err != nil {
			yield(Event[T]{}, err)
			return
		}
		defer func() { _ = w.Close() }()
		for e, err := range listwatch.All(ctx, w) {
			event := Event[T]{Type: e.Type, Initial: e.Initial, Version: e.Version}
			if err == nil && e.Type != listwatch.Bookmark && e.Type != listwatch.Synced {
				event.Object, err = listwatch.Decode[T](e.Object)
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// Create writes a new value and returns it with the metadata that the server has set.
func (c Collection[T]) Create(ctx context.Context, value T) (T, error) {
	data, err := listwatch.Encode(value)
	if err != nil {
		return decode[T](nil, err)
	}
	return decode[T](c.Store.Create(ctx, data))
}

// Delete deletes the value at key and returns its last state, whose version is the version of the
// delete. If version is not zero, the value is deleted only if it has this version; otherwise the
// error has code Conflict. A value with finalizers is only marked, and deleted when its last
// finalizer is removed. The result is the zero T if the server does not return the object; a
// Kubernetes API server rarely does. If the last state cannot be decoded, the error has code
// Corrupt, although the value was deleted.
func (c Collection[T]) Delete(ctx context.Context, key listwatch.Key, version listwatch.Version) (T, error) {
	o, err := c.Store.Delete(ctx, key, listwatch.Preconditions{Version: version})
	if o == nil && err == nil {
		var none T
		return none, nil
	}
	return decode[T](o, err)
}

// Patch patches the value at key and returns the result. Store must be a [listwatch.Patcher], such
// as a client.Remote; otherwise the error has code Unsupported.
func (c Collection[T]) Patch(ctx context.Context, key listwatch.Key, p listwatch.Patch) (T, error) {
	patcher, ok := c.Store.(listwatch.Patcher)
	if !ok {
		return decode[T](nil, &listwatch.Error{
			Code: listwatch.Unsupported, Op: "patch", Message: fmt.Sprintf("a %T cannot patch objects", c.Store),
		})
	}
	return decode[T](patcher.Patch(ctx, key, p))
}

// maxUpdateTries limits the attempts of Update, in case the server reports a conflict for every
// write.
const maxUpdateTries = 100

// Update reads the value at key, calls change, which modifies the value, and writes the result. If
// another writer was faster, Update repeats these steps, up to a hundred times, so change may be
// called several times. If change returns an error, nothing is written and Update returns the error
// unchanged. If change modifies nothing, nothing is written and Update returns the value that it
// read.
//
// Members that T does not have are kept, because Update writes the object that it read, with only
// the modifications of change. A modified array replaces the old array as a whole, and an object
// that the value no longer has, such as a nil pointer or a zero struct with the option omitzero, is
// removed as a whole. metadata.resourceVersion and uid keep their values, whatever change does with
// them, if the object that was read has them.
//
// A Kubernetes API server ignores changes of the status if the resource has the subresource status.
// Update then fails with code Unsupported, after the other changes were stored. To change the
// status, use a Collection over a client.Subresource.
func (c Collection[T]) Update(ctx context.Context, key listwatch.Key, change func(*T) error) (T, error) {
	for try := 1; ; try++ {
		old, err := c.Store.Get(ctx, key)
		if err != nil {
			return decode[T](nil, err)
		}
		data, err := edit(old, change)
		if err != nil || data == nil {
			return decode[T](old, err)
		}
		o, err := c.Store.Replace(ctx, key, data)
		if !errors.Is(err, listwatch.Conflict) || try == maxUpdateTries {
			if err == nil {
				err = checkStatus(old, data, o)
			}
			return decode[T](o, err)
		}
		// The first retry does not wait. Later retries wait a random time, so that writers that
		// conflicted do not meet again. The bound is short at first, for a store in this process,
		// and grows to a second, for a busy server.
		longest := min(time.Second, 100*time.Microsecond<<min(try, 14))
		if try > 1 && !reflector.Sleep(ctx, rand.N(longest)) {
			return decode[T](nil, ctx.Err())
		}
	}
}

// checkStatus returns an error if a write of data over old has ignored a change of the status: data
// has another status than old, but written, the object in the response, does not.
func checkStatus(old *listwatch.Object, data []byte, written *listwatch.Object) error {
	was, sent := rawjson.Lookup(old.Data, "status"), rawjson.Lookup(data, "status")
	if bytes.Equal(was, sent) || !equalStatus(was, rawjson.Lookup(written.Data, "status")) || equalStatus(was, sent) {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Unsupported, Op: "update",
		Message: "the server has ignored the new status of " + old.Key.String() + ", because the resource has the " +
			"subresource status: update the status through a client.Subresource (other changes were stored)",
	}
}

// equalStatus reports whether a and b are equal JSON. A missing status is equal to an empty one.
func equalStatus(a, b []byte) bool {
	if len(a) == 0 {
		a = []byte("{}")
	}
	if len(b) == 0 {
		b = []byte("{}")
	}
	return rawjson.Equal(a, b)
}

// edit returns the JSON of old with the modifications of change, or nil if there are none.
func edit[T any](old *listwatch.Object, change func(*T) error) ([]byte, error) {
	value, err := listwatch.Decode[T](old)
	if err != nil {
		return nil, err
	}
	before, err := listwatch.Encode(value)
	if err != nil {
		return nil, err
	}
	if err := change(&value); err != nil {
		return nil, err
	}
	after, err := listwatch.Encode(value)
	if err != nil {
		return nil, err
	}
	data, err := rawjson.Rebase(old.Data, before, after)
	if err == nil && bytes.Equal(data, old.Data) {
		return nil, nil
	}
	if err == nil && !hasIdentity(data, old.Data) {
		// With the version that was read, Replace detects that another writer was faster.
		data, err = rawjson.Rebase(data, []byte(`{"metadata":{}}`), identity(old.Data))
	}
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Corrupt, Op: "update", Err: err}
	}
	return data, nil
}

// hasIdentity reports whether data has the uid and the resourceVersion of object.
func hasIdentity(data, object []byte) bool {
	got, want := rawjson.Lookup(data, "metadata"), rawjson.Lookup(object, "metadata")
	return bytes.Equal(rawjson.Lookup(got, "uid"), rawjson.Lookup(want, "uid")) &&
		bytes.Equal(rawjson.Lookup(got, "resourceVersion"), rawjson.Lookup(want, "resourceVersion"))
}

// identity returns an object with only the uid and the resourceVersion of object in its metadata.
func identity(object []byte) []byte {
	metadata := rawjson.Lookup(object, "metadata")
	out := []byte(`{"metadata":{`)
	if uid := rawjson.Lookup(metadata, "uid"); uid != nil {
		out = append(append(append(out, `"uid":`...), uid...), ',')
	}
	out = append(out, `"resourceVersion":`...)
	return append(append(out, rawjson.Lookup(metadata, "resourceVersion")...), "}}"...)
}

// decode decodes o, the object that a call returned, unless err, the error of the call, is not nil.
func decode[T any](o *listwatch.Object, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return listwatch.Decode[T](o)
}
