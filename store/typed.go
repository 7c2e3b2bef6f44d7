package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"

	"github.com/listwatch/listwatch"
)

// Pointer is satisfied by pointers to types that embed [listwatch.Metadata]; it lets the compiler refuse others.
type MetadataPointer[T any] interface {
	*T
	Key() listwatch.Key
	Version() listwatch.Version
}

// A Typed is a collection whose objects are values of a Go type. It is a [listwatch.Source] of the same objects, and safe for
// concurrent use.
//
// T embeds [listwatch.Metadata] with the tag `json:"metadata"`. Members that T does not have are lost when Update writes an object
// that somebody else created with them: share a collection with other writers only where T has all that they write.
type Typed[T any] struct {
	collection *Collection
}

// NewTyped returns c as a collection of T. A T whose JSON does not keep its metadata in a member of that name is an error of code
// Invalid.
func NewTyped[T any, P MetadataPointer[T]](c *Collection) (*Typed[T], error) {
	const name = "probe"
	t := reflect.TypeFor[T]()
	wrong := func(err error) error {
		return &listwatch.Error{
			Code: listwatch.Invalid, Err: err,
			Message: fmt.Sprintf("%s can't be stored: it must embed listwatch.Metadata with the tag `json:\"metadata\"`", t),
		}
	}
	o := &listwatch.Object{Data: []byte(`{"metadata":{"name":"` + name + `"}}`)}
	value, err := listwatch.Decode[T](o)
	if err != nil {
		return nil, wrong(err)
	}
	if got := P(&value).Key().Name; got != name {
		return nil, wrong(nil)
	}
	data, err := encode(value)
	if err != nil {
		return nil, wrong(err)
	}
	if o, err = listwatch.ParseObject(data); err != nil || o.Key.Name != name {
		return nil, wrong(err)
	}
	return &Typed[T]{c}, nil
}

// ResourceOf returns the Resource that a Go type stands for where nothing more is said: its name is the kind, and everything else
// is the default.
func SpecOf[T any]() CollectionSpec {
	return CollectionSpec{Kind: reflect.TypeFor[T]().Name()}.WithDefaults()
}

// Untyped returns the collection below t.
func (t *Typed[T]) Untyped() *Collection { return t.collection }

// Describe, List and Watch are those of the collection below: they make t a [listwatch.Source]. For values, see Items and Events.
func (t *Typed[T]) Describe() listwatch.Description { return t.collection.Describe() }

// List returns the state of a selection at one version, as JSON; see Items for values.
func (t *Typed[T]) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return t.collection.List(ctx, q)
}

// Watch follows a selection, as JSON; see Events for values.
func (t *Typed[T]) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return t.collection.Watch(ctx, q)
}

// Get returns the newest value at key.
func (t *Typed[T]) Get(ctx context.Context, key listwatch.Key) (T, error) {
	return decode[T](t.collection.Get(ctx, key))
}

// Create writes a new value and returns it with what the collection set.
func (t *Typed[T]) Create(ctx context.Context, value T) (T, error) {
	data, err := encode(value)
	if err != nil {
		var none T
		return none, err
	}
	return decode[T](t.collection.Create(ctx, data))
}

// Update lets change modify the value at key and writes it; see [Collection.Update]. An error of change gives the update up and is
// returned as it is.
func (t *Typed[T]) Update(ctx context.Context, key listwatch.Key, change func(*T) error) (T, error) {
	return decode[T](t.collection.Update(ctx, key, Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
		value, err := listwatch.Decode[T](old)
		if err != nil {
			return nil, err
		}
		if err := change(&value); err != nil {
			return nil, err
		}
		return encode(value)
	}))
}

// Delete removes the value at key and returns its last state; one with finalizers stays for now. See [Collection.Delete].
func (t *Typed[T]) Delete(ctx context.Context, key listwatch.Key) (T, error) {
	return decode[T](t.collection.Delete(ctx, key, Preconditions{}))
}

// Items returns the values of a selection in key order, and the version at which they were so. With q.Limit they are the first
// page; for the others, use List.
func (t *Typed[T]) Items(ctx context.Context, q listwatch.Query) ([]T, listwatch.Version, error) {
	page, err := t.collection.List(ctx, q)
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
type TypedEvent[T any] struct {
	// Type, Initial and Version are those of the event it was made from.
	Type    listwatch.EventType
	Initial bool
	Version listwatch.Version
	// Object is the zero T for bookmarks.
	Object T
}

// Events follows a selection until ctx ends or the caller breaks off. An error is the last thing it yields; a clean end of the
// watch yields none.
func (t *Typed[T]) Events(ctx context.Context, q listwatch.Query) iter.Seq2[TypedEvent[T], error] {
	return func(yield func(TypedEvent[T], error) bool) {
		w, err := t.collection.Watch(ctx, q)
		if err != nil {
			yield(TypedEvent[T]{}, err)
			return
		}
		defer func() { _ = w.Close() }()
		for e, err := range listwatch.All(ctx, w) {
			event := TypedEvent[T]{Type: e.Type, Initial: e.Initial, Version: e.Version}
			if err == nil && e.Type != listwatch.Bookmark && e.Type != listwatch.Synced {
				event.Object, err = listwatch.Decode[T](e.Object)
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// decode is listwatch.Decode for the results of a call.
func decode[T any](o *listwatch.Object, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return listwatch.Decode[T](o)
}

// encode is json.Marshal that leaves <, > and & as they are: nobody puts a store's JSON into HTML.
func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("encode %T", value), Err: err}
	}
	return buf.Bytes(), nil
}
