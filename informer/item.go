package informer

import (
	"encoding/json"
	"maps"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/listwatch/listwatch"
)

// An Item is one object in the local store, decoded once. It is immutable and shared:
// neither the Item nor anything that Value points to may be modified.
type Item[T any] struct {
	// Key and Version are the key and version of the object. In a deletion, Version is the
	// version of the deletion.
	Key     listwatch.Key
	Version listwatch.Version
	// Value is the decoded object, after Transform if that is set.
	Value T

	// labels is nil if GetLabels of Value returns a new copy on each call; Labels then calls
	// GetLabels. Otherwise labels is the map of Value or, if Value has other labels than the
	// object, the map of the object.
	labels map[string]string
}

// Labels returns the labels that label selectors match. The map may be shared and must not be
// modified. An Item that was not made from an object has the labels of its Value.
func (i *Item[T]) Labels() map[string]string {
	if i.labels != nil {
		return i.labels
	}
	return metadataOf(&i.Value).labels
}

// newItem returns an item for o and the value decoded from it. Metadata that both contain
// is taken from value, so that o can be garbage collected.
func newItem[T any](o *listwatch.Object, value T) *Item[T] {
	i := &Item[T]{Key: o.Key, Version: o.Version, Value: value, labels: o.Labels}
	own := metadataOf(&i.Value)
	if own.key == o.Key {
		i.Key = own.key
	}
	switch {
	case !maps.Equal(own.labels, o.Labels):
	case isSameMap(own.labels, metadataOf(&i.Value).labels):
		i.labels = own.labels
	default:
		// The value's GetLabels returns a new copy of the labels on each call, as in
		// unstructured.Unstructured. The item keeps no copy, so Labels calls GetLabels.
		i.labels = nil
	}
	return i
}

// detach removes the last reference of the item to the memory of o, which the source will reuse.
func (i *Item[T]) detach(o *listwatch.Object) {
	if isSameMap(i.labels, o.Labels) {
		i.labels = maps.Clone(i.labels)
	}
}

// isSameMap reports whether a and b are the same map, or both nil.
func isSameMap(a, b map[string]string) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// valueMetadata is the metadata found in a decoded value, or zero if there is none.
type valueMetadata struct {
	key    listwatch.Key
	labels map[string]string
}

// kubernetesObject is implemented by types that embed metav1.ObjectMeta.
type kubernetesObject interface {
	GetName() string
	GetNamespace() string
	GetLabels() map[string]string
}

// metadataOf reads the metadata of *p, which may be a struct that embeds
// listwatch.Metadata, a Kubernetes type, a pointer to one of these, or an interface that
// holds such a pointer. It does not allocate.
func metadataOf[T any](p *T) valueMetadata {
	v := reflect.ValueOf(p)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return valueMetadata{}
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || !v.CanAddr() {
		return valueMetadata{}
	}
	if m := embeddedMetadata(v); m != nil {
		return valueMetadata{m.Key(), m.Labels}
	}
	if n, ok := v.Addr().Interface().(kubernetesObject); ok {
		return valueMetadata{listwatch.Key{Namespace: n.GetNamespace(), Name: n.GetName()}, n.GetLabels()}
	}
	return valueMetadata{}
}

var typeMetadata = reflect.TypeFor[listwatch.Metadata]()

// embeddedMetadata returns the listwatch.Metadata that is a field of v or of a struct
// embedded in v, or nil.
func embeddedMetadata(v reflect.Value) *listwatch.Metadata {
	t := v.Type()
	for i := range t.NumField() {
		f := v.Field(i)
		if f.Type() == typeMetadata && f.CanInterface() {
			return f.Addr().Interface().(*listwatch.Metadata)
		}
	}
	for i := range t.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Struct && t.Field(i).Anonymous {
			if m := embeddedMetadata(f); m != nil {
				return m
			}
		}
	}
	return nil
}

// defaultDecoder returns the decoder that is used if Decode is nil. release is true if
// decoded values share no memory with the object, so that the source can reuse that memory.
func defaultDecoder[T any]() (decode func(*listwatch.Object) (T, error), release bool) {
	asItIs := func(o *listwatch.Object) (*listwatch.Object, error) { return o, nil }
	if decode, ok := any(asItIs).(func(*listwatch.Object) (T, error)); ok {
		return decode, false
	}
	return decodeJSON[T], true
}

// decodeJSON has the semantics of [listwatch.Decode], which uses encoding/json, but it takes a
// third of the time and produces a third of the garbage. The result shares no memory with o,
// provided that every json.Unmarshaler copies the bytes that it keeps, as its contract requires.
func decodeJSON[T any](o *listwatch.Object) (T, error) {
	var t T
	err := jsonv2.Unmarshal(o.Data, &t, jsonOptions)
	return t, err // the caller adds the object's name
}

// jsonOptions selects the semantics of encoding/json. Without the unmarshaler for
// json.Number, a number would be decoded like a string.
var jsonOptions = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(
	func(d *jsontext.Decoder, n *json.Number) error {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		return json.Unmarshal(value, n)
	},
)))
