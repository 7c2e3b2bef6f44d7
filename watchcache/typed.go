package watchcache

import (
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Typed is a Cache that takes Go values. The JSON of a T must have its name and namespace in the
// member "metadata", as with [listwatch.Metadata]. Typed also has the other methods of [Cache].
type Typed[T any] struct {
	*Cache
}

// NewTyped returns a Typed for the collection that d describes; see [New].
func NewTyped[T any](d listwatch.Description, o Options) *Typed[T] { return &Typed[T]{New(d, o)} }

// A TypedValue is a value at the version of its last write.
type TypedValue[T any] struct {
	Version listwatch.Version
	Value   T
}

// A TypedChange is a [Change] of a Go value.
type TypedChange[T any] struct {
	// Version is the version of the write.
	Version listwatch.Version
	// Key is the key of the value. It may be zero if Value is set, whose key is used.
	Key listwatch.Key
	// Value is the value after the write. If nil, the write deleted it.
	Value *T
	// Old is the value before the write, at its version. If nil, the write created the value. Only
	// the past that is passed to Replace needs it.
	Old *TypedValue[T]
	// At is the time of the write; see [Change].
	At time.Time
}

// Replace is like [Cache.Replace]. The resourceVersion of each value is set to its version.
func (t *Typed[T]) Replace(values []TypedValue[T], v listwatch.Version, past ...TypedChange[T]) error {
	objects := make([]*listwatch.Object, len(values))
	for i := range values {
		var err error
		if objects[i], err = values[i].object(); err != nil {
			return err
		}
	}
	changes, err := untyped(past)
	for i := 0; i < len(past) && err == nil; i++ {
		if old := past[i].Old; old != nil {
			changes[i].Old, err = old.object()
		}
	}
	if err != nil {
		return err
	}
	return t.Cache.Replace(objects, v, changes...)
}

// Apply is like [Cache.Apply]. The resourceVersion of each value is set to the version of its
// change.
func (t *Typed[T]) Apply(changes ...TypedChange[T]) error {
	untyped, err := untyped(changes)
	if err != nil {
		return err
	}
	return t.Cache.Apply(untyped...)
}

// untyped converts changes and encodes their values. It does not set Old.
func untyped[T any](typed []TypedChange[T]) ([]Change, error) {
	changes := make([]Change, len(typed))
	for i, c := range typed {
		changes[i] = Change{Version: c.Version, Key: c.Key, At: c.At}
		var err error
		if c.Value != nil {
			after := TypedValue[T]{c.Version, *c.Value}
			if changes[i].Object, err = after.object(); err != nil {
				return nil, err
			}
		}
	}
	return changes, nil
}

// object returns v as an object.
func (v *TypedValue[T]) object() (*listwatch.Object, error) {
	data, err := rawjson.Encode(&v.Value)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Op: "watchcache", Message: fmt.Sprintf("encode %T", v.Value), Err: err}
	}
	return listwatch.NewObject(data, v.Version, nil)
}
