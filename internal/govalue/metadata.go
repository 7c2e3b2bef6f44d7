// Package govalue has what an informer must know of the Go values that it keeps.
package govalue

import (
	"reflect"

	"github.com/listwatch/listwatch"
)

// Metadata is the metadata found in a value, or zero if there is none.
type Metadata struct {
	Key    listwatch.Key
	Labels map[string]string
}

// kubernetesObject is implemented by types that embed metav1.ObjectMeta.
type kubernetesObject interface {
	GetName() string
	GetNamespace() string
	GetLabels() map[string]string
}

// MetadataOf reads the metadata of *p, which may be a struct that embeds
// listwatch.Metadata, a Kubernetes type, a pointer to one of these, or an interface that
// holds such a pointer. It does not allocate.
func MetadataOf[T any](p *T) Metadata {
	v := reflect.ValueOf(p)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return Metadata{}
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || !v.CanAddr() {
		return Metadata{}
	}
	if m := embeddedMetadata(v); m != nil {
		return Metadata{m.Key(), m.Labels}
	}
	if n, ok := v.Addr().Interface().(kubernetesObject); ok {
		return Metadata{listwatch.Key{Namespace: n.GetNamespace(), Name: n.GetName()}, n.GetLabels()}
	}
	return Metadata{}
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
