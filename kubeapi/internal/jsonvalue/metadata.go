package jsonvalue

import (
	"slices"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// SetMetadata returns a copy of object in which one member of the metadata has the given name and
// value. All other bytes are unchanged. object is compact JSON. If it has no metadata, SetMetadata
// returns object.
func SetMetadata(object []byte, name string, value []byte) []byte {
	metadata, err := rawjson.Find(object, "metadata")
	if err != nil || metadata.Empty() {
		return object
	}
	inner := metadata.Of(object)
	span, err := rawjson.Find(inner, name)
	switch {
	case err != nil:
		return object
	case !span.Empty():
		span = span.Shift(metadata.Start)
		return slices.Concat(object[:span.Start], value, object[span.End:])
	}
	var member []byte
	if string(inner) != "{}" {
		member = append(member, ',')
	}
	member = append(append(rawjson.AppendString(member, name), ':'), value...)
	return slices.Concat(object[:metadata.End-1], member, object[metadata.End-1:])
}

// SetFinalizers is like SetMetadata, for the finalizers.
func SetFinalizers(object []byte, names []string) []byte {
	list := []byte{'['}
	for i, name := range names {
		if i > 0 {
			list = append(list, ',')
		}
		list = rawjson.AppendString(list, name)
	}
	return SetMetadata(object, "finalizers", append(list, ']'))
}
