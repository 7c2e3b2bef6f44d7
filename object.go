package listwatch

import (
	"strings"

	"github.com/listwatch/listwatch/internal/framecache"
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
	// strings are as their writer wrote them. All other fields are copies of parts of Data.
	Data []byte

	initial framecache.LazyFrames // see frames.go
}

// ParseObject parses the JSON of an object and does not keep data. It leaves Fields empty,
// because the owner of a collection declares its fields. If data is not a JSON object with
// metadata, the error has code [Invalid].
func ParseObject(data []byte) (*Object, error) {
	compact, err := rawjson.Compact(data)
	if err != nil {
		return nil, &Error{Code: Invalid, Op: "parse object", Err: err}
	}
	m, err := rawjson.ReadMetadata(compact, pool.GetMap)
	if err != nil {
		return nil, &Error{Code: Invalid, Op: "parse object", Err: err}
	}
	v, err := ParseVersion(m.ResourceVersion)
	if err != nil {
		return nil, err
	}
	return &Object{Key: Key{m.Namespace, m.Name}, Version: v, Labels: m.Labels, Data: compact}, nil
}

// At returns a copy of o whose resourceVersion is v. A Deleted event shows the last state of its
// object in this way, at the version of the delete.
func (o *Object) At(v Version) *Object {
	c := &Object{Key: o.Key, Version: v, Labels: o.Labels, Fields: o.Fields, Data: o.Data}
	meta, err := rawjson.Find(o.Data, "metadata")
	if err != nil || meta.Empty() {
		return c
	}
	span, err := rawjson.Find(meta.Of(o.Data), "resourceVersion")
	if err != nil || span.Empty() {
		return c
	}
	span = span.Shift(meta.Start)
	c.Data = rawjson.Splice(o.Data[:span.Start], v.String(), o.Data[span.End:])
	return c
}
