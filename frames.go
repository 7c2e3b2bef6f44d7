package listwatch

import "github.com/listwatch/listwatch/internal/framecache"

// The methods in this file are for the stores and transports of this module, which share
// encoded frames through them. Their types are internal: a store outside this module need not
// cache frames, and a transport outside it gets cached frames from transport.Encoder. See
// docs/adr/0013.

// WithFrames is for the stores of this module. It returns e with a cache for its encoded frames,
// which all copies of the result share.
func (e Event) WithFrames(f *framecache.Frames) Event {
	e.frames = f
	return e
}

// Frames is for the transports of this module. It returns the cache for the encoded frames of e, or
// nil, which is a cache that keeps nothing.
func (e Event) Frames() *framecache.Frames { return e.frames }

// InitialFrames is for the stores of this module. It returns the cache for the Added event that
// shows o among the initial events of a watch.
func (o *Object) InitialFrames() *framecache.LazyFrames { return &o.initial }
