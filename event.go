package listwatch

import "github.com/listwatch/listwatch/internal/framecache"

// An EventType says what happened to an object, as seen through the selection of one watcher.
type EventType uint8

// The types of events. There is no error type: a watcher that fails ends with a Go error, and only a framing knows that the
// wire spells it ERROR.
const (
	// Added: the object appeared: it was created, or it entered the selection, or it is part of the initial events.
	Added EventType = iota + 1
	// Modified: the object was in the selection before and after the write.
	Modified
	// Deleted: the object was deleted or left the selection. Event.Object is its last state that matched, at the version of
	// the write that removed it.
	Deleted
	// Bookmark: nothing happened; everything up to Event.Version that concerns this watcher has been delivered.
	Bookmark
	// Synced: the bookmark that ends the initial events (annotated k8s.io/initial-events-end on the wire, KEP-3157).
	Synced
)

var eventNames = [...]string{Added: "ADDED", Modified: "MODIFIED", Deleted: "DELETED", Bookmark: "BOOKMARK", Synced: "BOOKMARK"}

// String returns the name that Kubernetes' WatchEvent uses. Synced is a BOOKMARK there.
func (t EventType) String() string {
	if int(t) < len(eventNames) && eventNames[t] != "" {
		return eventNames[t]
	}
	return "UNKNOWN"
}

// An Event is one change of a collection. It is a small value: copies share the object and the encoded frames.
type Event struct {
	// Type is what happened.
	Type EventType
	// Initial is true for an Added event that is part of the state a watch began with. Such events come in key order, so
	// their versions are in no order and a watch must not be resumed from them.
	Initial bool
	// Object is the state after the change; for Deleted, the last state that matched. A bookmark's object holds nothing but
	// kind, apiVersion and metadata.
	Object *Object
	// Version is the version of the write: Object.Version, but for initial events and bookmarks see their types.
	Version Version

	frames *framecache.Frames // see frames.go; nil if frames are not cached
}
