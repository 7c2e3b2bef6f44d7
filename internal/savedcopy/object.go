package savedcopy

import (
	"encoding/json"
	"iter"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A savedObject is an object on a line.
type savedObject struct {
	Namespace, Name string
	Version         listwatch.Version
	Labels          map[string]string `json:",omitempty"`
	Fields          map[string]string `json:",omitempty"`
	Value           json.RawMessage   `json:",omitempty"`
}

// EncodeObject returns the line of an object. Its Data may be any JSON. It is nil for a key that
// was deleted at o.Version.
func EncodeObject(o *listwatch.Object) ([]byte, error) {
	return rawjson.Encode(savedObject{o.Key.Namespace, o.Key.Name, o.Version, o.Labels, o.Fields, o.Data})
}

// Lines yields the line of each value.
func Lines[T any](values iter.Seq[T], encode func(T) ([]byte, error)) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for v := range values {
			if !yield(encode(v)) {
				return
			}
		}
	}
}

// DecodeObject returns the object of a line.
func DecodeObject(line []byte) (*listwatch.Object, error) {
	var s savedObject
	if err := jsonv2.Unmarshal(line, &s, jsonv1.DefaultOptionsV1()); err != nil {
		return nil, err
	}
	return &listwatch.Object{
		Key: listwatch.Key{Namespace: s.Namespace, Name: s.Name}, Version: s.Version,
		Labels: s.Labels, Fields: s.Fields, Data: s.Value,
	}, nil
}
