package wire

import (
	"unique"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/wire/frames"
	"github.com/listwatch/listwatch/transport"
)

// A form is a wire form: streams with equal forms share frames.
type form struct {
	transport.Encoder
	representation transport.Representation // nil for unmodified objects
}

// handle returns the key of f in the caches of frames.
func (f form) handle() frames.Form { return unique.Make[any](f) }

// formOf is the inverse of handle.
func formOf(h frames.Form) form { return h.Value().(form) }

// afterFirst returns the form of all events after the first event of a stream.
func (f form) afterFirst() form {
	if f.representation != nil {
		f.representation = f.representation.AfterFirst()
	}
	return f
}

// private returns the form of data that no other stream receives. Such data stays out of the
// client's history if the transport permits that.
func (f form) private() form {
	if h := f.History(); h != nil {
		f.Encoder = f.WithEnvelope(h.Private)
	}
	return f
}

// textEnvelope adds nothing to a text.
var textEnvelope = &transport.Envelope{}

// uncompressed returns the form whose frames are the text of the frames of f.
func (f form) uncompressed() form {
	f.Encoder, _ = transport.EncoderFor(f.Framer, textEnvelope) // fails for messages only
	return f
}

// represent returns e with its object in the representation of f.
func (f form) represent(e listwatch.Event) framing.WatchEvent {
	w := framing.FromEvent(e)
	if f.representation != nil {
		w.Object = f.representation.AppendObject(make([]byte, 0, len(w.Object)+256), e)
	}
	return w
}

// dependsOnTime reports whether encoding an event again may result in another text.
func (f form) dependsOnTime() bool {
	return f.representation != nil && f.representation.DependsOnTime()
}

// build returns the frame of e, without any cache.
func (f form) build(e listwatch.Event) ([]byte, error) { return f.Frame(f.represent(e)) }

// entersHistory reports whether the text of frame becomes part of the client's history.
func (f form) entersHistory(frame []byte) bool {
	h := f.History()
	return h == nil || h.Entered(frame)
}

// cached returns the frame of e in the form h. All streams of this form share the frame, unless e
// is an initial event and the form depends on the time.
func cached(h frames.Form, e listwatch.Event, kept *frames.Frames) ([]byte, error) {
	if frame, ok := kept.Get(h); ok {
		return frame, nil
	}
	f := formOf(h)
	if e.Initial && f.dependsOnTime() {
		// Do not cache the frame. It would be kept until the object is replaced, so watchers could
		// receive a frame that is days out of date.
		return f.build(e)
	}
	return kept.GetOrBuild(h, func() ([]byte, error) { return f.build(e) })
}
