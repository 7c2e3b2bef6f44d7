package listwatch

import (
	"slices"
	"strings"

	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Key identifies an object in its collection. Namespace is empty in a collection without
// namespaces.
type Key struct{ Namespace, Name string }

// String returns "namespace/name", or only the name if Namespace is empty.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Compare orders keys by namespace, then by name. Lists and initial events have this order.
func (k Key) Compare(o Key) int {
	if c := strings.Compare(k.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Name, o.Name)
}

// An Object is one encoded object at one version. It is immutable and shared: neither Data nor
// the maps may be modified.
type Object struct {
	// Key is metadata.namespace and metadata.name, and Version is metadata.resourceVersion.
	Key     Key
	Version Version
	// Labels is metadata.labels, for label selectors.
	Labels map[string]string
	// Fields holds the values for field selectors, by path, except metadata.name and
	// metadata.namespace.
	Fields map[string]string
	// Data is the JSON of the object on one line, without insignificant space. Numbers and
	// strings are as their writer wrote them. If the collection has a [Description.Encoding], Data
	// is the object in that encoding. All other fields are copies of parts of Data.
	Data []byte
}

// ParseObject parses the JSON of an object and does not keep data. It leaves Fields empty, because
// it does not know which fields the collection declares. If data is not a JSON object with
// metadata, the error has code [Invalid]. A [Source] that you write yourself uses [NewObject]
// instead.
func ParseObject(data []byte) (*Object, error) {
	compact, err := rawjson.Compact(data)
	if err != nil {
		return nil, &Error{Code: Invalid, Op: "parse object", Message: err.Error()}
	}
	m, err := rawjson.ReadMetadata(compact, pool.GetMap)
	if err != nil {
		return nil, &Error{Code: Invalid, Op: "parse object", Message: err.Error()}
	}
	v, err := ParseVersion(m.ResourceVersion)
	if err != nil {
		return nil, err
	}
	return &Object{Key: Key{m.Namespace, m.Name}, Version: v, Labels: m.Labels, Data: compact}, nil
}

// NewObject returns an object with the JSON in data and the version v, for a [Source] that you
// write yourself. It does not keep data. The resourceVersion in data is replaced, or added if it is
// missing. fields becomes [Object.Fields] and may be nil.
//
// If data is not a JSON object with a metadata.name, or v is zero, the error has code [Invalid].
func NewObject(data []byte, v Version, fields map[string]string) (*Object, error) {
	o, err := ParseObject(data)
	switch {
	case err != nil:
		return nil, err
	case o.Key.Name == "":
		return nil, &Error{Code: Invalid, Op: "new object", Message: "the object has no metadata.name"}
	case v == 0:
		return nil, &Error{
			Code: Invalid, Op: "new object", Message: o.Key.String() + " has version 0: versions start at 1",
		}
	}
	o = o.At(v)
	o.Fields = fields
	return o, nil
}

// At returns a copy of o, an object in JSON, whose resourceVersion is v. A Deleted event contains
// such a copy: the last state of the object, at the version of the delete. See also
// [Description.At].
func (o *Object) At(v Version) *Object {
	return &Object{Key: o.Key, Version: v, Labels: o.Labels, Fields: o.Fields, Data: withVersion(o.Data, v)}
}

// withVersion returns doc, an object in compact JSON, with the resourceVersion v. If doc or its
// metadata is not a JSON object, withVersion returns doc.
func withVersion(doc []byte, v Version) []byte {
	meta, err := rawjson.Find(doc, "metadata")
	if err != nil {
		return doc
	}
	if meta.Empty() {
		return rawjson.Append(doc, `"metadata":{"resourceVersion":"`+v.String()+`"}`)
	}
	span, err := rawjson.Find(meta.Of(doc), "resourceVersion")
	if err != nil {
		return doc
	}
	if span.Empty() {
		changed := rawjson.Append(meta.Of(doc), `"resourceVersion":"`+v.String()+`"`)
		return slices.Concat(doc[:meta.Start], changed, doc[meta.End:])
	}
	span = span.Shift(meta.Start)
	return rawjson.Splice(doc[:span.Start], v.String(), doc[span.End:])
}
