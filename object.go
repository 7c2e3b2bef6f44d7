package listwatch

import (
	"encoding/json"
	"strings"

	"github.com/listwatch/listwatch/internal/framecache"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Key names an object in its collection. Namespace is empty in collections that have no namespaces.
type Key struct{ Namespace, Name string }

// String returns "namespace/name", or the name alone where there is no namespace.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Compare orders keys by namespace, then by name. It is the order of lists and of initial events.
func (k Key) Compare(o Key) int {
	if c := strings.Compare(k.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Name, o.Name)
}

// An Object is one encoded object as it was at one version. It is immutable and shared: neither its maps nor Data may be modified.
type Object struct {
	// Key and Version are metadata.namespace, metadata.name and metadata.resourceVersion.
	Key     Key
	Version Version
	// Labels is what a label selector sees: metadata.labels. Fields is what a field selector sees, by path, beside
	// metadata.name and metadata.namespace.
	Labels map[string]string
	Fields map[string]string
	// Data is the object's JSON on one line, without insignificant space. These bytes are the truth: numbers and strings
	// are as the writer wrote them, and everything else here was read from them once.
	Data []byte

	initial framecache.LazyFrames // see frames.go
}

// ParseObject reads an object from JSON, in which space may be. It takes a copy of data. Fields stays empty: only who
// declares the fields of a collection can fill it. JSON that is no object with metadata is an error of code [Invalid].
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

// At returns o as an event of version v shows it: the same content with another resourceVersion. A deletion needs it: its object
// is the last state, at the version of the delete.
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

// NewBookmark returns a Bookmark event at v, or with synced the Synced event that ends the initial events.
func NewBookmark(d Description, v Version, synced bool) Event {
	b := bookmark{Kind: d.Kind, APIVersion: d.APIVersion}
	b.Metadata.ResourceVersion = v.String()
	e := Event{Type: Bookmark, Version: v}
	if synced || d.Epoch != "" {
		b.Metadata.Annotations = make(map[string]string, 2)
	}
	if synced {
		e.Type = Synced
		b.Metadata.Annotations[AnnotationSynced] = "true"
	}
	if d.Epoch != "" {
		b.Metadata.Annotations[AnnotationEpoch] = d.Epoch
	}
	data, err := json.Marshal(b)
	if err != nil {
		panic("listwatch: a bookmark of strings can't fail to encode: " + err.Error())
	}
	e.Object = &Object{Version: v, Data: data}
	return e
}

// The annotations that a bookmark may bear.
const (
	// AnnotationSynced marks the bookmark that ends the initial events, with the value "true" (KEP-3157).
	AnnotationSynced = "k8s.io/initial-events-end"
	// AnnotationEpoch is [Description.Epoch]; ours alone.
	AnnotationEpoch = "listwatch.dev/epoch"
)

type bookmark struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
}
