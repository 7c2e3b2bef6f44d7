package framing

import (
	"io"
	"slices"

	"github.com/listwatch/listwatch"
)

// An EncodedFramer is a Framer of collections whose objects are not JSON. It encodes the object of
// an ADDED, MODIFIED or DELETED event in the encoding. If such an object begins with "{", it is
// JSON that has only a kind, an apiVersion, a name, a namespace and a resourceVersion, because the
// server knows no more of it. The object of any other event is JSON, too. The Framer chooses the
// form of these objects on the wire. Its decoders return bookmarks and errors as JSON, and all
// other objects in the encoding.
//
// A Framer that has a Content-Type with parameters has a method ContentType() string, too.
type EncodedFramer interface {
	Framer
	// Encoding returns the encoding, which must not be nil.
	Encoding() listwatch.Encoding
}

// EncodingOf returns the encoding of the objects that decoders of f return. It is nil for JSON, and
// so for [CBORSeq].
func EncodingOf(f Framer) listwatch.Encoding {
	if e, ok := f.(EncodedFramer); ok {
		return e.Encoding()
	}
	return nil
}

// ContentTypeOf returns the Content-Type of a stream of f: its media type or, if f has a method
// ContentType, the result of that.
func ContentTypeOf(f Framer) string {
	if c, ok := f.(interface{ ContentType() string }); ok {
		return c.ContentType()
	}
	return f.MediaType()
}

// For returns the framings of r for collections with the given encoding, which is nil for JSON. If
// r has none, the result offers nothing, and its Negotiate fails.
func (r *Registry) For(e listwatch.Encoding) *Registry {
	isOther := func(f Framer) bool { return EncodingOf(f) != e }
	if !slices.ContainsFunc(r.framers, isOther) {
		return r
	}
	return &Registry{framers: slices.DeleteFunc(slices.Clone(r.framers), isOther)}
}

// EventOf is like [WatchEvent.TrustedEvent], for the result of a Decoder of a framing with the
// encoding e, which is nil for JSON.
func (w WatchEvent) EventOf(e listwatch.Encoding) (listwatch.Event, error) {
	if e == nil || w.Type == TypeError || w.Type == listwatch.Bookmark.String() {
		return w.TrustedEvent()
	}
	return w.event(e.Read)
}

// A List is a page of a list, and its type.
type List struct {
	// APIVersion and Kind are the type of the list, such as v1 and PodList. They are empty if the
	// type is not known.
	APIVersion, Kind string
	listwatch.Page
}

// A ListEncoding is an [listwatch.Encoding] that has a form for lists. Without it, a collection can
// only be watched over HTTP. A single object is sent as its [listwatch.Object.Data].
type ListEncoding interface {
	listwatch.Encoding
	// MediaType returns the media type of lists and of single objects, for Content-Type and Accept.
	MediaType() string
	// WriteList writes l. If represent is not nil, it appends the representation of an item, an
	// object in the encoding, which is written instead of the item. It may be called more than once
	// for an item, and then appends the same bytes. WriteList returns the first error of w, or an
	// error before it has written anything.
	WriteList(w io.Writer, l List, represent func(dst []byte, o *listwatch.Object) []byte) error
	// ReadList reads a list from r up to its end. An object may have at most limit bytes, before
	// memory is allocated for it. The objects of the list have the same bytes as in a watch. If the
	// list is malformed, the error has code Corrupt. If it ended early, the error is
	// io.ErrUnexpectedEOF. Other errors of r are returned unchanged.
	ReadList(r io.Reader, limit int) (List, error)
}

// A StatusDecoder is a Framer of servers that send an error response in the form of an ERROR event
// too, and not only in JSON.
type StatusDecoder interface {
	Framer
	// DecodeStatus returns the JSON of the Status in body, the body of a response whose
	// Content-Type has the media type of the Framer.
	DecodeStatus(body []byte) ([]byte, error)
}
