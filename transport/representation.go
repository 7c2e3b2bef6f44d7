package transport

import "github.com/listwatch/listwatch"

// A Representation replaces the objects of a stream with objects of another shape, such as the rows
// of a table (Kubernetes API concepts, "Alternate representations of resources"). It is part of the
// wire form: streams with equal Representations share their frames. A Representation must be
// comparable and safe for concurrent use.
type Representation interface {
	// AppendObject appends the replacement for the object of e to dst, as JSON on one line. It is
	// also called for bookmarks.
	AppendObject(dst []byte, e listwatch.Event) []byte
	// AfterFirst returns the Representation for all events after the first event of a stream. It is
	// the Representation itself if all events have the same representation.
	AfterFirst() Representation
	// DependsOnTime reports whether AppendObject depends on the current time. If it does,
	// frames of initial events are not cached, and other frames are cached only while their
	// event is in the history.
	DependsOnTime() bool
}
