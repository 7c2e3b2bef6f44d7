package framing

import (
	"encoding/json"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/pool"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// FromError returns the ERROR event that says err, which must not be nil: its object is the Status of err.
func FromError(err error) WatchEvent {
	object, fault := json.Marshal(listwatch.StatusOf(err))
	if fault != nil {
		// A Status is strings and numbers, which encode; should that change, the stream must still say that it failed.
		object = []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"InternalError","code":500}`)
	}
	return WatchEvent{Type: TypeError, Object: object}
}

// Event returns what w says to Go. An ERROR is returned as the error that the peer sent. Everything else that is no event is an
// error too: of code Unsupported where this package can't know what w means (a type of the future, a resourceVersion that is no
// decimal number), of code Corrupt where w breaks the protocol (an object without a resourceVersion or, unless it is a
// bookmark's, without a name).
//
// The version of the event is that of its object: an event of the wire doesn't say whether it is one of the initial events.
func (w WatchEvent) Event() (listwatch.Event, error) { return w.event(listwatch.ParseObject) }

// Adopt is [WatchEvent.Event] of an event that a [Decoder] has returned and nobody else holds. Decoders make sure that an object is JSON and
// compact, so that is not looked at again, and the event's object keeps the bytes. One from elsewhere that is not so is an error of code
// Corrupt, or passes unnoticed.
func (w WatchEvent) TrustedEvent() (e listwatch.Event, err error) {
	defer func() {
		if recover() != nil {
			e, err = listwatch.Event{}, corrupt("the decoder's object is no compact JSON: "+excerpt(w.Object), nil)
		}
	}()
	return w.event(readObject)
}

// readObject is [listwatch.ParseObject] for data that is known to be valid and compact. The object keeps data.
func readObject(data []byte) (*listwatch.Object, error) {
	m, err := rawjson.ReadMetadata(data, pool.GetMap)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Op: "parse object", Err: err}
	}
	v, err := listwatch.ParseVersion(m.ResourceVersion)
	if err != nil {
		return nil, err
	}
	return &listwatch.Object{Key: listwatch.Key{Namespace: m.Namespace, Name: m.Name}, Version: v, Labels: m.Labels, Data: data}, nil
}

func (w WatchEvent) event(parse func([]byte) (*listwatch.Object, error)) (listwatch.Event, error) {
	if w.Type == TypeError {
		return listwatch.Event{}, listwatch.ParseStatus(w.Object)
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
		return listwatch.Event{}, corrupt(fmt.Sprintf("the object of an event %s has no name", w.Type), nil)
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
		Code: listwatch.Unsupported, Op: "read an event",
		Message: fmt.Sprintf("the type is %s, want ADDED, MODIFIED, DELETED, BOOKMARK or ERROR", excerpt([]byte(w.Type))),
	}
}

// objectError tells a resourceVersion of a foreign kind from an object that is none: the first is sound elsewhere, and reading the
// collection again would not help.
func objectError(w WatchEvent, cause error) error {
	if raw, err := metadata(w.Object, "resourceVersion"); err == nil {
		version, err := rawjson.String(raw)
		if _, bad := listwatch.ParseVersion(version); err == nil && bad != nil {
			return &listwatch.Error{Code: listwatch.Unsupported, Op: "read an event", Err: bad}
		}
	}
	return corrupt(fmt.Sprintf("the object of a %s event", w.Type), cause)
}

// metadata returns the named member of an object's metadata, compact; nil where there is none.
func metadata(object []byte, name string) ([]byte, error) {
	doc, err := rawjson.Compact(object)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"metadata", name} {
		span, err := rawjson.Find(doc, name)
		if err != nil || span.Empty() {
			return nil, err
		}
		doc = span.Of(doc)
	}
	return doc, nil
}

func endsInitialEvents(bookmark []byte) bool {
	raw, err := metadata(bookmark, "annotations")
	if err != nil || raw == nil {
		return false
	}
	annotations, err := rawjson.StringMap(raw)
	return err == nil && annotations[listwatch.AnnotationSynced] == "true"
}
