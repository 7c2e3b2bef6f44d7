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
	Value           json.RawMessage   `json:",omitempty"` // Data, if it is JSON
	Encoded         []byte            `json:",omitempty"` // Data, if it has an encoding
}

// EncodeObject returns the line of an object in the encoding e. If e is nil, its Data may be any
// JSON. Data is nil for a key that was deleted at o.Version.
func EncodeObject(o *listwatch.Object, e listwatch.Encoding) ([]byte, error) {
	s := savedObject{o.Key.Namespace, o.Key.Name, o.Version, o.Labels, o.Fields, o.Data, nil}
	if e != nil {
		s.Value, s.Encoded = nil, o.Data
	}
	return rawjson.Encode(s)
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
	o := &listwatch.Object{
		Key: listwatch.Key{Namespace: s.Namespace, Name: s.Name}, Version: s.Version,
		Labels: s.Labels, Fields: s.Fields, Data: s.Value,
	}
	if s.Encoded != nil {
		o.Data = s.Encoded
	}
	return o, nil
}
