package apihttp

import (
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/transport"
)

// A ListRepresentation is an alternative form of objects, such as a row of a Kubernetes Table,
// both for the single objects of a watch and for a list.
type ListRepresentation interface {
	transport.Representation
	// ListType returns the type of a list of objects that d describes.
	ListType(d listwatch.Description) (apiVersion, kind string)
	// AppendItem appends the item of a list that represents o. If the objects have an encoding, the
	// item has the same encoding.
	AppendItem(dst []byte, o *listwatch.Object) []byte
}

// A listHeader is a ListRepresentation whose lists have other members than Kubernetes' lists.
type listHeader interface {
	ListRepresentation
	// AppendListHead appends the list up to and including the bracket before its items. d describes
	// the objects, and metadata is the metadata of the list, in JSON.
	AppendListHead(dst []byte, d listwatch.Description, metadata []byte) []byte
}

// A RepresentationFunc returns the [ListRepresentation] that a client requests by the parameters of
// a media range, such as as=Table, g=meta.k8s.io and v=v1. params may also hold parameters of the
// framing. list is true if the response is a list.
//
// If the objects have an encoding, the function is also called for ranges that only have the
// parameter drop.
//
// If there is no such representation, the function returns nil and no error, and the server
// tries the client's next choice. If it returns an error, the server refuses the request
// with it.
type RepresentationFunc func(params map[string]string, list bool) (ListRepresentation, error)

// listType returns the type of a list of objects that d describes, in the representation r, which
// may be nil.
func listType(r ListRepresentation, d listwatch.Description) (apiVersion, kind string) {
	switch {
	case r != nil:
		return r.ListType(d)
	case d.Kind == "List": // the kind of a list of objects of several kinds
		return d.APIVersion, d.Kind
	}
	return d.APIVersion, d.Kind + "List"
}

// appendListHead appends the start of a list in the representation r, up to its items.
func appendListHead(dst []byte, r ListRepresentation, d listwatch.Description, metadata []byte) []byte {
	if r, ok := r.(listHeader); ok {
		return r.AppendListHead(dst, d, metadata)
	}
	apiVersion, kind := listType(r, d)
	dst = rawjson.AppendString(append(dst, `{"kind":`...), kind)
	dst = rawjson.AppendString(append(dst, `,"apiVersion":`...), apiVersion)
	dst = append(append(dst, `,"metadata":`...), metadata...)
	return append(dst, `,"items":[`...)
}

// dropsManagedFields reports whether the parameter drop of a media range requests objects without
// metadata.managedFields (Kubernetes enhancement proposal 5958). The parameter is a list of parts,
// separated by plus signs. Unknown parts are ignored.
func dropsManagedFields(m framing.MediaRange) bool {
	return slices.Contains(strings.Split(m.Params["drop"], "+"), "metadata.managedFields")
}

// unmanaged is a representation of objects without metadata.managedFields. It only changes the
// shape of objects: a write that changes nothing else still sends its event, because clients wait
// for the version of their own writes.
type unmanaged struct {
	of ListRepresentation // nil for the objects themselves
}

var _ listHeader = unmanaged{}

// AppendObject implements [transport.Representation].
func (u unmanaged) AppendObject(dst []byte, e listwatch.Event) []byte {
	if u.of == nil {
		return u.AppendItem(dst, e.Object)
	}
	e.Object = withoutManagedFields(e.Object)
	return u.of.AppendObject(dst, e)
}

// AfterFirst implements [transport.Representation].
func (u unmanaged) AfterFirst() transport.Representation {
	if u.of != nil {
		u.of = u.of.AfterFirst().(ListRepresentation)
	}
	return u
}

// DependsOnTime implements [transport.Representation].
func (u unmanaged) DependsOnTime() bool { return u.of != nil && u.of.DependsOnTime() }

// ListType implements [ListRepresentation].
func (u unmanaged) ListType(d listwatch.Description) (apiVersion, kind string) {
	return listType(u.of, d)
}

// AppendListHead implements [listHeader].
func (u unmanaged) AppendListHead(dst []byte, d listwatch.Description, metadata []byte) []byte {
	return appendListHead(dst, u.of, d, metadata)
}

// AppendItem implements [ListRepresentation].
func (u unmanaged) AppendItem(dst []byte, o *listwatch.Object) []byte {
	if u.of == nil {
		return appendWithoutManagedFields(dst, o.Data)
	}
	return u.of.AppendItem(dst, withoutManagedFields(o))
}

func withoutManagedFields(o *listwatch.Object) *listwatch.Object {
	reduced := *o
	reduced.Data = appendWithoutManagedFields(nil, o.Data)
	return &reduced
}

func appendWithoutManagedFields(dst, object []byte) []byte {
	return rawjson.AppendWithout(dst, object, "metadata", "managedFields")
}
