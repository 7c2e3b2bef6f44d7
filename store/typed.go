package store

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// MetadataPointer is the constraint of pointers to types that embed [listwatch.Metadata]. The
// compiler rejects other types.
type MetadataPointer[T any] interface {
	*T
	Key() listwatch.Key
	Version() listwatch.Version
}

// A Typed is a collection whose objects are values of a Go type. It is a [listwatch.Source]
// of the same objects, and safe for concurrent use.
//
// T embeds [listwatch.Metadata] with the tag `json:"metadata"`. Members that T does not have
// are lost when Update writes an object. If other writers use the collection as well, T must
// have all members that they write.
type Typed[T any] struct {
	collection *Collection
}

// NewTyped returns c as a collection of T. If the JSON of T does not keep its metadata in the
// member "metadata", the error has code Invalid.
func NewTyped[T any, P MetadataPointer[T]](c *Collection) (*Typed[T], error) {
	const name = "probe"
	invalid := func(err error) error {
		return &listwatch.Error{
			Code: listwatch.Invalid, Err: err,
			Message: fmt.Sprintf("%s cannot be stored: it must embed listwatch.Metadata with the tag `json:\"metadata\"`", reflect.TypeFor[T]()),
		}
	}
	o := &listwatch.Object{Data: []byte(`{"metadata":{"name":"` + name + `"}}`)}
	value, err := listwatch.Decode[T](o)
	if err != nil {
		return nil, invalid(err)
	}
	if got := P(&value).Key().Name; got != name {
		return nil, invalid(nil)
	}
	data, err := encode(value)
	if err != nil {
		return nil, invalid(err)
	}
	if o, err = listwatch.ParseObject(data); err != nil || o.Key.Name != name {
		return nil, invalid(err)
	}
	return &Typed[T]{c}, nil
}

// SpecOf returns the default CollectionSpec of a Go type: the kind is the name of the type,
// and all other fields have their defaults.
func SpecOf[T any]() CollectionSpec {
	return CollectionSpec{Kind: reflect.TypeFor[T]().Name()}.WithDefaults()
}

// Untyped returns the underlying collection.
func (t *Typed[T]) Untyped() *Collection { return t.collection }

// Describe implements [listwatch.Describer].
func (t *Typed[T]) Describe() listwatch.Description { return t.collection.Describe() }

// Stats returns the current sizes of the collection; see [Collection.Stats].
func (t *Typed[T]) Stats() listwatch.Stats { return t.collection.Stats() }

// List implements [listwatch.Source]. It returns JSON; [Typed.Items] returns values.
func (t *Typed[T]) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return t.collection.List(ctx, q)
}

// Watch implements [listwatch.Source]. It returns JSON; [Typed.Events] returns values.
func (t *Typed[T]) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return t.collection.Watch(ctx, q)
}

// Get returns the newest value at key. If there is none, the error has code NotFound.
func (t *Typed[T]) Get(ctx context.Context, key listwatch.Key) (T, error) {
	return decode[T](t.collection.Get(ctx, key))
}

// Create writes a new value and returns it with the metadata that the collection has set.
func (t *Typed[T]) Create(ctx context.Context, value T) (T, error) {
	data, err := encode(value)
	if err != nil {
		var none T
		return none, err
	}
	return decode[T](t.collection.Create(ctx, data))
}

// Update calls the function change, which modifies the value at key, and writes the result;
// see [Collection.Update]. If change returns an error, nothing is written and Update returns
// the error unchanged.
func (t *Typed[T]) Update(ctx context.Context, key listwatch.Key, change func(*T) error) (T, error) {
	return decode[T](t.collection.Update(ctx, key, listwatch.Preconditions{}, func(old *listwatch.Object) ([]byte, error) {
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

// Delete removes the value at key and returns its last state. A value with finalizers is not
// removed yet; see [Collection.Delete].
func (t *Typed[T]) Delete(ctx context.Context, key listwatch.Key) (T, error) {
	return decode[T](t.collection.Delete(ctx, key, listwatch.Preconditions{}))
}

// Items returns the selected values in key order, and the version of this state. If q.Limit is set,
// Items returns only the first page; use List to read further pages.
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

// A TypedEvent is a [listwatch.Event] with its object decoded.
type TypedEvent[T any] struct {
	// Type, Initial and Version have the same meaning as in listwatch.Event.
	Type    listwatch.EventType
	Initial bool
	Version listwatch.Version
	// Object is the zero T for bookmarks.
	Object T
}

// Events watches the selected values until ctx ends or the caller stops the iteration. If
// the watch fails, the error is the last element. If it ends cleanly, there is no error.
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

// decode takes the results of a call and decodes the object, unless the call failed.
func decode[T any](o *listwatch.Object, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return listwatch.Decode[T](o)
}

// encode returns the JSON of value.
func encode(value any) ([]byte, error) {
	data, err := rawjson.Encode(value)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("encode %T", value), Err: err}
	}
	return data, nil
}
