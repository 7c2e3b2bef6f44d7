package informer

import (
	"fmt"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/internal/savedcopy"
)

func encodeSaved[T any](i *Item[T]) (line []byte, err error) {
	s := listwatch.Object{Key: i.Key, Version: i.Version, Labels: i.Labels()}
	if o, ok := any(i.Value).(*listwatch.Object); ok {
		s.Fields, s.Data = o.Fields, o.Data
	} else if s.Data, err = rawjson.Encode(i.Value); err != nil {
		return nil, fmt.Errorf("encode %s: %w", i.Key, err)
	}
	return savedcopy.EncodeObject(&s)
}

func decodeSaved[T any](line []byte) (*Item[T], error) {
	o, err := savedcopy.DecodeObject(line)
	if err != nil {
		return nil, err
	}
	if value, ok := any(o).(T); ok {
		return newItem(o, value), nil
	}
	var value T
	if err := jsonv2.Unmarshal(o.Data, &value, jsonOptions); err != nil {
		return nil, err
	}
	return newItem(o, value), nil
}

// typeText describes t, so that a program does not use saved values after the members of their type
// have changed. path holds the types that contain t.
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
