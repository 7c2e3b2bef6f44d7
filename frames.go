package listwatch

import "github.com/listwatch/listwatch/internal/framecache"

// The stores and transports of this module share encoded frames through the methods in this file.
// The types of the frames are internal, because no other module needs them: a store outside this
// module need not cache frames, and a transport outside it gets cached frames from
// transport.Encoder. See docs/adr/0013.

// WithFrames is for the stores of this module. It returns a copy of e that keeps its encoded frames
// in the cache f. All copies of the result share this cache.
func (e Event) WithFrames(f *framecache.Frames) Event {
	e.frames = f
	return e
}

// Frames is for the transports of this module. It returns the cache for the encoded frames of e. A
// nil result is a valid cache that keeps nothing.
func (e Event) Frames() *framecache.Frames { return e.frames }

// InitialFrames is for the stores of this module. It returns the cache for the Added event that
// shows o among the initial events of a watch.
func (o *Object) InitialFrames() *framecache.LazyFrames { return &o.initial }

// WithNode is for the stores of this module. It returns a copy of e with n as its position in a
// feed. In n, transports store the frames of e that are compressed together with earlier events of
// the feed.
func (e Event) WithNode(n *framecache.Node) Event {
	e.node = n
	return e
}

// Node is for the transports of this module. It returns the position of e in a feed, or nil if e is
// not an event of a feed.
func (e Event) Node() *framecache.Node { return e.node }
