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

// An Item is one object as the local store keeps it: decoded once, immutable and shared. Nothing in it may be changed, nor what Value
// points to.
type Item[T any] struct {
	// Key and Version are those of the object. The item of a deletion has the version of the deletion.
	Key     listwatch.Key
	Version listwatch.Version
	// Value is the object, after the transformation if there is one.
	Value T

	// labels is the map of Value where that has the object's labels; the object's own where Value doesn't have them. nil: Value is asked.
	labels map[string]string
}

// Labels returns what a label selector sees of the item. The map is shared and must not be changed. An Item that was made without an object
// has the labels of its Value.
func (i *Item[T]) Labels() map[string]string {
	if i.labels != nil {
		return i.labels
	}
	return metadataOf(&i.Value).labels
}

// newItem returns o as an item with the value that was decoded from it. What o and value both say is kept once, as value has it, so that o
// can go: it costs a store beside the decoded objects what it doesn't share.
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
		i.labels = nil // Value makes a map whenever it is asked, as unstructured objects do
	}
	return i
}

// detach makes i independent of o, whose memory is to be used again.
func (i *Item[T]) detach(o *listwatch.Object) {
	if isSameMap(i.labels, o.Labels) {
		i.labels = maps.Clone(i.labels)
	}
}

// isSame reports whether a and b are one map, or none.
func isSameMap(a, b map[string]string) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// metadata is what a value says of itself; zero where it says nothing.
type valueMetadata struct {
	key    listwatch.Key
	labels map[string]string
}

// named is what the types of Kubernetes have, by metav1.ObjectMeta.
type kubernetesObject interface {
	GetName() string
	GetNamespace() string
	GetLabels() map[string]string
}

// valueOf reads the metadata of *p: a struct that embeds listwatch.Metadata or is a Kubernetes type, a pointer to one, or an interface
// that holds such a pointer. It allocates nothing.
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

// metadataIn returns the listwatch.Metadata that is a member of v, or of a struct embedded there.
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

// decoder returns how objects become values where nobody says it, and whether they can go then.
func defaultDecoder[T any]() (decode func(*listwatch.Object) (T, error), release bool) {
	asItIs := func(o *listwatch.Object) (*listwatch.Object, error) { return o, nil }
	if decode, ok := any(asItIs).(func(*listwatch.Object) (T, error)); ok {
		return decode, false
	}
	return decodeJSON[T], true
}

// decodeJSON is [listwatch.Decode] with what is to become encoding/json: the same rules, in a third of the time and with a third of the
// garbage. Nothing that it returns shares memory with o. A json.Unmarshaler must copy what it keeps, as always.
func decodeJSON[T any](o *listwatch.Object) (T, error) {
	var t T
	err := jsonv2.Unmarshal(o.Data, &t, jsonOptions)
	return t, err // who calls says of what
}

// rules are those of encoding/json. Its type Number is a mere string to who has a Number of its own.
var jsonOptions = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(
	func(d *jsontext.Decoder, n *json.Number) error {
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		return json.Unmarshal(value, n)
	},
)))
