package informer

import (
	"maps"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/govalue"
	"github.com/listwatch/listwatch/internal/sharedmaps"
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
	return govalue.MetadataOf(&i.Value).Labels
}

// newItem returns an item for o and the value decoded from it. Metadata that both contain
// is taken from value, so that o can be garbage collected.
func newItem[T any](o *listwatch.Object, value T) *Item[T] {
	i := &Item[T]{Key: o.Key, Version: o.Version, Value: value, labels: o.Labels}
	own := govalue.MetadataOf(&i.Value)
	if own.Key == o.Key {
		i.Key = own.Key
	}
	switch {
	case !maps.Equal(own.Labels, o.Labels):
	case sharedmaps.IsSameMap(own.Labels, govalue.MetadataOf(&i.Value).Labels):
		i.labels = own.Labels
	default:
		// The value's GetLabels returns a new copy of the labels on each call, as in
		// unstructured.Unstructured. The item keeps no copy, so Labels calls GetLabels.
		i.labels = nil
	}
	return i
}

// detach removes the last reference of the item to the memory of o, which the source will reuse.
func (i *Item[T]) detach(o *listwatch.Object) {
	if sharedmaps.IsSameMap(i.labels, o.Labels) {
		i.labels = maps.Clone(i.labels)
	}
}
