package store

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
)

// A CollectionSpec declares a collection: the kind of its objects and the rules for them. The
// zero CollectionSpec is kind "Object" of apiVersion "v1" without namespaces. It must not be
// modified after a collection was made from it.
type CollectionSpec struct {
	// APIVersion and Kind are the objects' apiVersion and kind, as in Kubernetes: "apps/v1" and
	// "Deployment". If empty, "v1" and "Object" are used.
	APIVersion, Kind string
	// Plural is the name of the collection in messages and paths. If empty, Kind in lower
	// case with an "s" is used.
	Plural string
	// Namespaced is true if every object has a namespace, and false if no object has a namespace.
	Namespaced bool
	// DropNamespace removes metadata.namespace from an object in a collection without namespaces,
	// as Kubernetes does. If false, such an object is refused.
	DropNamespace bool
	// Fields are the paths that a field selector may name in addition to metadata.name and
	// metadata.namespace, such as "spec.nodeName". The value of a string is its text, the
	// value of a number or boolean its JSON. Everything else counts as absent.
	Fields []string
	// FieldRules holds rules for the values of some Fields, by path. It must not be modified.
	FieldRules map[string]listwatch.FieldRule
	// CheckName returns an error, which is shown to the writer, if an object may not have the
	// name. Names that cannot be one segment of a URL path are refused before CheckName is
	// called. If CheckName is nil, [listwatch.CheckName] is used, which accepts the DNS
	// subdomains that Kubernetes requires for most kinds.
	CheckName func(name string) error
	// CheckNamespace returns an error, which is shown to the writer, if an object may not have the
	// namespace. If CheckNamespace is nil, [listwatch.CheckNamespace] is used, which accepts DNS
	// labels, as Kubernetes does.
	CheckNamespace func(namespace string) error
	// GeneratedNames accepts new objects without a name. The backend chooses the name, for example
	// from a sequence. Admit sees no name, and the keys of the Change and of its Draft have none.
	// An update does not check the name, which may break the rules for names that a writer chooses.
	GeneratedNames bool
	// Admit validates each object before a create or an update stores it, and may set defaults. It
	// sees the writes of all clients, including patches and dry runs; a delete is not passed to it.
	//
	// data is the JSON of the new object, with kind, apiVersion, name and namespace. Metadata that
	// the collection sets may be missing. old is the stored object, or nil for a create. Admit
	// returns the JSON to store, which is data if it changes nothing. The rules of the collection
	// apply to the result, which must have the same name and namespace. ctx is the context of the
	// write, for [IsNameGenerated], and holds the user of an HTTP request (watchserver.UserOf).
	//
	// An error refuses the write with status 422, and the writer receives its text. A
	// [listwatch.Cause] names the wrong field, and errors.Join combines several. An error that is a
	// *listwatch.Error with a code is returned unchanged: return one of code Unavailable, with the
	// cause in Err, if Admit cannot decide because something that it needs has failed. An object
	// that was valid when it was stored may have become invalid; compare with old if writers must
	// still be able to change other parts of it.
	//
	// Admit may be called several times for one write, because of a conflict, and must be safe for
	// concurrent use. If nil, every object is admitted. typed.Admit turns a function of Go values
	// into an Admit.
	Admit func(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error)
	// Generation selects the changes that raise metadata.generation.
	Generation GenerationRule
	// TTL returns the time to live of an object from its JSON, which may lack the metadata that the
	// collection sets. The object is deleted when this time has passed since the last write to it,
	// even if that write changed nothing. Zero or a negative value means that the object does not
	// expire, and nor does an object with finalizers. TTL must always return the same result for
	// the same JSON, because stores also call it when they load the collection, and it must be safe
	// for concurrent use. If TTL is nil, no object expires. The backend must be a [Renewer];
	// without it, creates and updates fail. typed.TTL turns a function of Go values into a TTL.
	TTL func(data []byte) time.Duration
	// MaxObjects and MaxBytes are the quotas of the collection: the maximum number of objects, and
	// the maximum total length of their JSON. A write that would exceed a quota is refused with a
	// [QuotaError]. Deletes, and updates that make an object no larger, are always allowed. If zero
	// or negative, there is no quota. The backend needs a Stats method, which all stores of this
	// module have; without it, creates and updates fail. Servers that share an etcd count only
	// their own writes in progress, so together they may exceed a quota by a few writes.
	MaxObjects int
	MaxBytes   int64
}

// SpecOf returns the default CollectionSpec of a Go type: the kind is the name of the type,
// and all other fields have their defaults.
func SpecOf[T any]() CollectionSpec {
	return CollectionSpec{Kind: reflect.TypeFor[T]().Name()}.WithDefaults()
}

// WithDefaults returns s with its empty fields set to their defaults.
func (s CollectionSpec) WithDefaults() CollectionSpec {
	s.APIVersion = cmp.Or(s.APIVersion, "v1")
	s.Kind = cmp.Or(s.Kind, "Object")
	s.Plural = cmp.Or(s.Plural, strings.ToLower(s.Kind)+"s")
	if s.CheckName == nil {
		s.CheckName = listwatch.CheckName
	}
	if s.CheckNamespace == nil {
		s.CheckNamespace = listwatch.CheckNamespace
	}
	return s
}

// Group returns the API group, which is the part of APIVersion before the slash. It is empty
// if there is no slash.
func (s CollectionSpec) Group() string {
	group, _, ok := strings.Cut(s.APIVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// QualifiedName returns the plural with the group, such as "pods" or "deployments.apps".
// Messages and databases use it to name the collection.
func (s CollectionSpec) QualifiedName() string {
	if g := s.Group(); g != "" {
		return s.Plural + "." + g
	}
	return s.Plural
}

// Description returns the description of a Source with this spec. epoch becomes
// [listwatch.Description.Epoch].
func (s CollectionSpec) Description(epoch string) listwatch.Description {
	return listwatch.Description{
		APIVersion: s.APIVersion, Kind: s.Kind, Fields: slices.Clone(s.Fields), FieldRules: s.FieldRules, Epoch: epoch,
	}
}

// ReadFields returns the values of Fields in data, an object's compact JSON. It returns nil
// if all of them are absent. Backends that keep only bytes use it to rebuild
// [listwatch.Object.Fields].
func (s CollectionSpec) ReadFields(data []byte) map[string]string {
	return listwatch.Description{Fields: s.Fields, FieldRules: s.FieldRules}.ReadFields(data)
}

// ReadTTL returns the time to live of the object with the compact JSON data, or zero if it does not
// expire. Backends that keep only bytes use it when they load a collection.
func (s CollectionSpec) ReadTTL(data []byte) time.Duration {
	if s.TTL == nil || hasFinalizer(data) {
		return 0
	}
	return max(s.TTL(data), 0)
}
