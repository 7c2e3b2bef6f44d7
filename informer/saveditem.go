package informer

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A savedItem is an Item in a file.
type savedItem struct {
	Namespace, Name string
	Version         listwatch.Version
	Labels          map[string]string `json:",omitempty"`
	Fields          map[string]string `json:",omitempty"` // of a *listwatch.Object
	Value           json.RawMessage
}

// encodeAll yields the items of s as JSON until one fails, and stores its error in failure.
func encodeAll[T any](s *Snapshot[T], failure *error) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range s.Items() {
			line, err := encodeSaved(i)
			if err != nil {
				*failure = err
				return
			}
			if !yield(line) {
				return
			}
		}
	}
}

func encodeSaved[T any](i *Item[T]) (line []byte, err error) {
	s := savedItem{Namespace: i.Key.Namespace, Name: i.Key.Name, Version: i.Version, Labels: i.Labels()}
	if o, ok := any(i.Value).(*listwatch.Object); ok {
		s.Fields, s.Value = o.Fields, o.Data
	} else if s.Value, err = rawjson.Encode(i.Value); err != nil {
		return nil, fmt.Errorf("encode %s: %w", i.Key, err)
	}
	return rawjson.Encode(s)
}

func decodeSaved[T any](line []byte) (*Item[T], error) {
	var s savedItem
	if err := jsonv2.Unmarshal(line, &s, jsonOptions); err != nil {
		return nil, err
	}
	o := &listwatch.Object{
		Key: listwatch.Key{Namespace: s.Namespace, Name: s.Name}, Version: s.Version,
		Labels: s.Labels, Fields: s.Fields, Data: s.Value,
	}
	if value, ok := any(o).(T); ok {
		return newItem(o, value), nil
	}
	var value T
	if err := jsonv2.Unmarshal(s.Value, &value, jsonOptions); err != nil {
		return nil, err
	}
	return newItem(o, value), nil
}

// typeText describes t, so that a program in which the type has other members does not use the
// values of an older one. path holds the types that contain t.
func typeText(t reflect.Type, path []reflect.Type) string {
	if slices.Contains(path, t) {
		return t.String()
	}
	path = append(path, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return t.Kind().String() + " " + typeText(t.Elem(), path)
	case reflect.Map:
		return "map " + typeText(t.Key(), path) + " " + typeText(t.Elem(), path)
	case reflect.Struct:
		text := t.String() + "{"
		for f := range t.NumField() {
			field := t.Field(f)
			text += field.Name + " " + typeText(field.Type, path) + " " + string(field.Tag) + ";"
		}
		return text + "}"
	}
	return t.String()
}
