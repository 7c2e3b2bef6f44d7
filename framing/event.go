package framing

import (
	"encoding/json"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubestatus"
)

// A WatchEvent is an event on the wire, like Kubernetes' metav1.WatchEvent.
type WatchEvent struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or a type that this version does not know.
	Type string
	// Object is the compact JSON of the object, or of a Status if Type is ERROR. See
	// [EncodedFramer] for the objects of a collection with an encoding.
	Object []byte
	// Version is the version from which a client may resume after this event. It is zero if a
	// client must not resume here, as after initial events and errors. Decoders of framings
	// without a separate position leave it zero.
	Version listwatch.Version
}

// TypeError is the type of the event that reports an error and ends the stream.
const TypeError = "ERROR"

// FromEvent converts e to a WatchEvent.
func FromEvent(e listwatch.Event) WatchEvent {
	w := WatchEvent{Type: e.Type.String(), Object: e.Object.Data, Version: e.Version}
	if e.Initial {
		// Initial events are sorted by key. A client that resumed from the version of one of them
		// would miss other initial events.
		w.Version = 0
	}
	return w
}

// FromError returns the ERROR event that reports err, which must not be nil. Its object is the
// Status of err.
func FromError(err error) WatchEvent {
	object, marshalErr := json.Marshal(kubestatus.Of(err))
	if marshalErr != nil {
		// A Status consists of strings and numbers, so encoding it never fails. If that
		// ever changes, the client still receives an ERROR event.
		object = []byte(
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"InternalError","code":500}`)
	}
	return WatchEvent{Type: TypeError, Object: object}
}

// Event converts w to a listwatch.Event. For an ERROR it returns the error that the peer sent. An
// unknown type, or a resourceVersion that is not a decimal number, is an error of code Unsupported.
// An object without a resourceVersion is an error of code Corrupt, and so is an object without a
// name, except in a bookmark.
//
// The version of the result is the version of the object. Initial is false, because the wire does
// not mark initial events.
func (w WatchEvent) Event() (listwatch.Event, error) { return w.event(listwatch.ParseObject) }

// TrustedEvent is like [WatchEvent.Event], but does not validate and copy the object. It must
// only be used for the result of a [Decoder], which is compact and valid JSON. The event keeps
// a reference to w.Object. For other JSON, the result may be an error of code Corrupt or an
// invalid object.
func (w WatchEvent) TrustedEvent() (e listwatch.Event, err error) {
	defer func() {
		if recover() != nil {
			e, err = listwatch.Event{}, corrupt("the object is not compact JSON: "+excerpt(w.Object), nil)
		}
	}()
	return w.event(readObject)
}

// readObject is like [listwatch.ParseObject], for data that is valid and compact. The object
// keeps a reference to data.
func readObject(data []byte) (*listwatch.Object, error) {
	m, err := rawjson.ReadMetadata(data, pool.GetMap)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Op: "parse object", Message: err.Error()}
	}
	v, err := listwatch.ParseVersion(m.ResourceVersion)
	if err != nil {
		return nil, err
	}
	return &listwatch.Object{
		Key: listwatch.Key{Namespace: m.Namespace, Name: m.Name}, Version: v, Labels: m.Labels, Data: data,
	}, nil
}

func (w WatchEvent) event(parse func([]byte) (*listwatch.Object, error)) (listwatch.Event, error) {
	if w.Type == TypeError {
		return listwatch.Event{}, kubestatus.Parse(w.Object)
	}
	t, err := w.eventType()
	if err != nil {
		return listwatch.Event{}, err
	}
	o, err := parse(w.Object)
	if err != nil {
		return listwatch.Event{}, objectError(w, err)
	}
	if o.Version == 0 {
		return listwatch.Event{}, corrupt(fmt.Sprintf("the object of a %s event has no resourceVersion", w.Type), nil)
	}
	if t == listwatch.Bookmark && endsInitialEvents(o.Data) {
		t = listwatch.Synced
	}
	if o.Key.Name == "" && t != listwatch.Bookmark && t != listwatch.Synced {
		return listwatch.Event{}, corrupt(fmt.Sprintf("the object of a %s event has no name", w.Type), nil)
	}
	return listwatch.Event{Type: t, Object: o, Version: o.Version}, nil
}

func (w WatchEvent) eventType() (listwatch.EventType, error) {
	switch w.Type {
	case "ADDED":
		return listwatch.Added, nil
	case "MODIFIED":
		return listwatch.Modified, nil
	case "DELETED":
		return listwatch.Deleted, nil
	case "BOOKMARK":
		return listwatch.Bookmark, nil
	}
	return 0, &listwatch.Error{
		Code: listwatch.Unsupported, Op: "decode event",
		Message: fmt.Sprintf("type %s: must be ADDED, MODIFIED, DELETED, BOOKMARK or ERROR", excerpt([]byte(w.Type))),
	}
}

// objectError returns the error for an object that cannot be read. If its only defect is a
// resourceVersion that is not a decimal number, the code is Unsupported, because other servers
// have such versions and a relist would not help.
func objectError(w WatchEvent, cause error) error {
	if listwatch.CodeOf(cause) == listwatch.Unsupported { // of an encoding
		return cause
	}
	if object, err := rawjson.Compact(w.Object); err == nil {
		version, err := rawjson.String(rawjson.Lookup(object, "metadata", "resourceVersion"))
		if _, bad := listwatch.ParseVersion(version); err == nil && bad != nil {
			return &listwatch.Error{Code: listwatch.Unsupported, Op: "decode event", Err: bad}
		}
	}
	return corrupt(fmt.Sprintf("the object of a %s event", w.Type), cause)
}

func endsInitialEvents(bookmark []byte) bool {
	raw := rawjson.Lookup(bookmark, "metadata", "annotations", listwatch.AnnotationSynced)
	value, err := rawjson.String(raw)
	return err == nil && value == "true"
}
