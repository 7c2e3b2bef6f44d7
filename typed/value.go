package typed

import (
	"fmt"
	"reflect"

	"github.com/listwatch/listwatch"
)

// Check returns an error of code Invalid unless T keeps its metadata in the member "metadata" of
// its JSON. It finds a forgotten tag before the first value is lost.
func Check[T any]() error {
	probe := &listwatch.Object{Data: []byte(`{"metadata":{"name":"probe"}}`)}
	value, err := listwatch.Decode[T](probe)
	var data []byte
	if err == nil {
		data, err = listwatch.Encode(value)
	}
	if err == nil {
		probe, err = listwatch.ParseObject(data)
	}
	if err == nil && probe.Key.Name == "probe" {
		return nil
	}
	return &listwatch.Error{
		Code: listwatch.Invalid, Err: err,
		Message: fmt.Sprintf("%s cannot be stored: it must embed listwatch.Metadata with the tag `json:\"metadata\"`",
			reflect.TypeFor[T]()),
	}
}

// NewObject returns the JSON of value at version v, for a Source that you write or feed yourself,
// such as a watchcache.Cache. The error has code Invalid if v is zero, or if the JSON has no
// metadata.name.
func NewObject(value any, v listwatch.Version) (*listwatch.Object, error) {
	data, err := listwatch.Encode(value)
	if err != nil {
		return nil, err
	}
	return listwatch.NewObject(data, v, nil)
}
