package transport

import "github.com/listwatch/listwatch"

// A Representation is a shape other than their own in which a stream shows objects, such as the rows of a table (Kubernetes API
// concepts, "Alternate representations of resources"). It is part of the wire form: streams with equal Representations share their
// frames. So it must be comparable, there must be few different ones in the life of a process, and it is safe for concurrent use.
type Representation interface {
	// AppendObject appends to dst what stands for the object of e, as JSON on one line. Bookmarks are shown so, too.
	AppendObject(dst []byte, e listwatch.Event) []byte
	// Rest returns the Representation of all events of a stream but the first. Where the first one says no more than the
	// others, that is the Representation itself.
	AfterFirst() Representation
	// Ages reports whether what is shown depends on the time. Frames of it are kept for no longer than their event is in the
	// history, and those of initial events not at all.
	DependsOnTime() bool
}
