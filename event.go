package listwatch

import (
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// An EventType is the kind of a change, as seen through the selection of one watcher.
type EventType uint8

// The event types. There is no type for errors: a watcher that fails returns a Go error. The
// framings send that error to the client as an ERROR event.
const (
	// Added means that the object was created, that it began to match the selection, or that it
	// is one of the initial events.
	Added EventType = iota + 1
	// Modified means that the object matched the selection before and after the write.
	Modified
	// Deleted means that the object was deleted or no longer matches the selection. Event.Object is
	// the last state that matched, at the version of the write that removed it.
	Deleted
	// Bookmark means that all events up to Event.Version have been delivered. It is not a change.
	Bookmark
	// Synced is the bookmark that ends the initial events. On the wire it has the annotation
	// k8s.io/initial-events-end (KEP-3157).
	Synced
)

var eventNames = [...]string{
	Added: "ADDED", Modified: "MODIFIED", Deleted: "DELETED", Bookmark: "BOOKMARK", Synced: "BOOKMARK",
}

// String returns the name of t in Kubernetes' WatchEvent. Synced is a BOOKMARK there.
func (t EventType) String() string {
	if int(t) < len(eventNames) && eventNames[t] != "" {
		return eventNames[t]
	}
	return "UNKNOWN"
}

// An Event is one change of a collection. It is a small value; copies share the object.
type Event struct {
	// Type is the kind of the change.
	Type EventType
	// Initial is true for the Added events that show the state with which a watch starts, and for
	// the Deleted events of a difference (see [Query.Since]). These events are not sorted by
	// version, so a watch must not be resumed from the version of such an event.
	Initial bool
	// Object is the state after the change. For Deleted, it is the last state that matched the
	// selection, but if Initial is true it has only its kind, apiVersion, namespace, name and
	// resourceVersion. The object of a bookmark has only kind, apiVersion and metadata.
	Object *Object
	// Version is the version of the write. For an initial event it is the version of the object,
	// and for a bookmark the version up to which the history has been delivered.
	Version Version
	// Committed is the time at which the Source in this process committed the write, for measuring
	// delays. It is zero for initial events and bookmarks, and if the Source does not know it. It
	// is not sent to clients.
	Committed time.Time
}

// State returns the state that a reader has after the Synced event or the bookmark e, for
// [Query.Since]. It is zero if the Source has not identified the state, for example because it
// sends only whole states.
func (e Event) State() State {
	id, ok := e.annotation(AnnotationState)
	if !ok || id == "" {
		return State{}
	}
	return State{Version: e.Version, ID: id}
}

// Since reports whether the initial events before the Synced event e were a difference, and not
// the whole state. v is the version of the state to which the difference applies. It is zero if the
// event has no valid version, so a reader must compare v with its [Query.Since].
func (e Event) Since() (v Version, isDifference bool) {
	text, ok := e.annotation(AnnotationSince)
	v, _ = ParseVersion(text) // v is zero after an error
	return v, ok
}

// annotation returns an annotation of e if e is a bookmark. The value is empty if it is not a
// string.
func (e Event) annotation(name string) (value string, ok bool) {
	if e.Type != Synced && e.Type != Bookmark {
		return "", false
	}
	raw := rawjson.Lookup(e.Object.Data, "metadata", "annotations", name)
	value, _ = rawjson.String(raw)
	return value, raw != nil
}
