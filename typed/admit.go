package typed

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// Admit returns a function for the field Admit of a store.CollectionSpec. The function decodes the
// new object and passes it to f, which validates it and may modify it, for example to set defaults.
// Members that T does not have are kept. old is the stored value, or nil for a create. Members of
// the stored object that cannot be decoded are zero in old. A new object that cannot be decoded as
// a T is refused. The field Admit describes the errors that f may return.
func Admit[T any](
	f func(ctx context.Context, old, value *T) error,
) func(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
	return func(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
		value, err := listwatch.Decode[T](&listwatch.Object{Data: data})
		if err != nil {
			return nil, &listwatch.Error{
				Code:    listwatch.Invalid,
				Message: fmt.Sprintf("the object has a member of a wrong type: %v", listwatch.AsError(err).Err),
			}
		}
		before, err := listwatch.Encode(value)
		if err != nil {
			return nil, err
		}
		var stored *T
		if old != nil {
			o, _ := listwatch.Decode[T](old) // decodes all other members
			stored = &o
		}
		if err := f(ctx, stored, &value); err != nil {
			return nil, err
		}
		after, err := listwatch.Encode(value)
		if err != nil {
			return nil, err
		}
		return rawjson.Rebase(data, before, after)
	}
}

// TTL returns a function for the field TTL of a store.CollectionSpec. The function decodes the
// object and passes it to f. An object that cannot be decoded as a T does not expire.
func TTL[T any](f func(value T) time.Duration) func(data []byte) time.Duration {
	return func(data []byte) time.Duration {
		value, err := listwatch.Decode[T](&listwatch.Object{Data: data})
		if err != nil {
			return 0
		}
		return f(value)
	}
}
