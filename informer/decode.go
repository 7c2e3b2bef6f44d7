package informer

import (
	"github.com/go-json-experiment/json/v1"

	"github.com/listwatch/listwatch"
)

// decodeJSON is [listwatch.Decode] with what is to become encoding/json: the same rules, in a third of the time and with a third of the
// garbage. Nothing that it returns shares memory with o. A json.Unmarshaler must copy what it keeps, as always.
func decodeJSON[T any](o *listwatch.Object) (T, error) {
	var t T
	if err := json.Unmarshal(o.Data, &t); err != nil {
		return t, &listwatch.Error{Code: listwatch.Corrupt, Op: "decode " + o.Key.String(), Err: err}
	}
	return t, nil
}
