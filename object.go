package listwatch

import (
	"encoding/json"
	"strings"
	"sync/atomic"

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

	version rawjson.Span // where Data holds the value of metadata.resourceVersion, quotes and all; zero: not looked for
	// initial are the frames of the Added event by which a watch shows the object in its initial events; made when first asked
	// for, and apart from the object, which a budget must not keep in memory.
	initial atomic.Pointer[Frames]
}

// ParseObject reads an object from JSON, in which space may be. It takes a copy of data. Fields stays empty: only who
// declares the fields of a collection can fill it. JSON that is no object with metadata is an error of code [Invalid].
func ParseObject(data []byte) (*Object, error) {
	compact, err := rawjson.Compact(data)
	if err != nil {
		return nil, &Error{Code: Invalid, Message: "an object must be JSON", Err: err}
	}
	return AdoptObject(compact)
}

// AdoptObject is [ParseObject] for JSON that is known to be valid, in UTF-8, on one line and without insignificant space: it is not read
// again to find that out, and the object keeps data itself. Anything else may panic.
func AdoptObject(data []byte) (*Object, error) {
	o := &Object{Data: data}
	meta, err := rawjson.Find(data, "metadata")
	if err == nil && meta.Empty() {
		err = errNoMetadata
	}
	if err != nil {
		return nil, &Error{Code: Invalid, Message: "an object must have metadata", Err: err}
	}
	if err := o.readMetadata(meta); err != nil {
		return nil, &Error{Code: Invalid, Message: "metadata of " + excerpt(data), Err: err}
	}
	return o, nil
}

const errNoMetadata = parseError("no member metadata")

type parseError string

func (e parseError) Error() string { return string(e) }

func (o *Object) readMetadata(meta rawjson.Span) error {
	return rawjson.Members(meta.Of(o.Data), func(name string, value rawjson.Span) (err error) {
		raw := value.Of(meta.Of(o.Data))
		switch name {
		case "name":
			o.Key.Name, err = rawjson.String(raw)
		case "namespace":
			o.Key.Namespace, err = rawjson.String(raw)
		case "labels":
			o.Labels, err = rawjson.FillStringMap(pool.Map(), raw)
		case "resourceVersion":
			var s string
			if s, err = rawjson.String(raw); err == nil {
				o.version = value.Shift(meta.Start)
				o.Version, err = ParseVersion(s)
			}
		}
		if err != nil {
			return parseError(name + ": " + err.Error())
		}
		return nil
	})
}

// At returns o as an event of version v shows it: the same content with another resourceVersion. A deletion needs it: its object
// is the last state, at the version of the delete.
func (o *Object) At(v Version) *Object {
	c := &Object{Key: o.Key, Version: v, Labels: o.Labels, Fields: o.Fields}
	span := o.version
	if span.Empty() {
		span = findVersion(o.Data)
	}
	if span.Empty() {
		c.Data = o.Data
		return c
	}
	c.Data, c.version = splice(o.Data[:span.Start], v, o.Data[span.End:])
	return c
}

func findVersion(data []byte) rawjson.Span {
	meta, err := rawjson.Find(data, "metadata")
	if err != nil || meta.Empty() {
		return rawjson.Span{}
	}
	span, err := rawjson.Find(meta.Of(data), "resourceVersion")
	if err != nil || span.Empty() {
		return rawjson.Span{}
	}
	return span.Shift(meta.Start)
}

// splice joins before, the quoted version and after in one copy, and says where the version came to be.
func splice(before []byte, v Version, after []byte) ([]byte, rawjson.Span) {
	digits := v.String()
	data := make([]byte, 0, len(before)+len(digits)+2+len(after))
	data = append(data, before...)
	data = append(data, '"')
	data = append(data, digits...)
	data = append(data, '"')
	span := rawjson.Span{Start: len(before), End: len(data)}
	return append(data, after...), span
}

// A Draft is an object that is complete but for its version. A store makes one before a commit, so that under its lock nothing
// is left to do but one copy.
type Draft struct {
	// Key, Labels and Fields are those of the object to be.
	Key    Key
	Labels map[string]string
	Fields map[string]string
	// Before and After are the object's JSON around the quoted value of metadata.resourceVersion.
	Before, After []byte
}

// Seal returns the object that d becomes at version v.
func (d *Draft) Seal(v Version) *Object {
	o := &Object{Key: d.Key, Version: v, Labels: d.Labels, Fields: d.Fields}
	o.Data, o.version = splice(d.Before, v, d.After)
	return o
}

// InitialEvent returns the Added event by which a watch shows o in its initial events. Its frames are kept for o, within budget, until
// [Object.DropInitial].
func (o *Object) InitialEvent(budget *FrameBudget) Event {
	f := o.initial.Load()
	if f == nil {
		f = new(Frames)
		if !o.initial.CompareAndSwap(nil, f) {
			f = o.initial.Load()
		}
	}
	return Event{Type: Added, Initial: true, Object: o, Version: o.Version}.Cached(f, budget)
}

// DropInitial drops the frames of [Object.InitialEvent], for good: no snapshot shows o any more.
func (o *Object) DropInitial(budget *FrameBudget) {
	if f := o.initial.Load(); f != nil {
		budget.Drop(f)
	}
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
