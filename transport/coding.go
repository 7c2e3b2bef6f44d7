package transport

import (
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/httpheader"
)

// A contentCoding compresses what a framing makes, event by event: part of the wire form, so that streams of one form share what comes
// out (RFC 9110, section 8.4.1).
type contentCoding struct {
	name     string
	compress func(dst, p []byte) []byte
	// summed: a stream ends with a check of all that it carried. Frames begin with what their part in it is, which a [StreamCoding]
	// takes off.
	summed bool
}

// contentCodings are those on offer. Who likes both the same gets gzip, which is as small: every decoder takes a stream of it as one,
// while some of zstd, such as that of Node, take the end of a frame for the end of all where more comes with it.
var contentCodings = []*contentCoding{
	{name: compress.Gzip, compress: compress.AppendDeflate, summed: true},
	{name: compress.Zstd, compress: compress.AppendZstd},
}

// Codings returns the names of the content codings that streams can be had in, those first that cost our clients less. The slice is
// the caller's.
func Codings() []string { return []string{compress.Zstd, compress.Gzip} }

// negotiateCoding chooses the content coding of an answer to r whose headers are h; nil: none. It sets Vary.
func negotiateCoding(h http.Header, r *http.Request) (*contentCoding, error) {
	if _, coded := h["Content-Encoding"]; coded {
		return nil, nil // by middleware
	}
	if !slices.Contains(h.Values("Vary"), "Accept-Encoding") {
		h.Add("Vary", "Accept-Encoding")
	}
	var offer []string
	for _, c := range contentCodings {
		offer = append(offer, c.name)
	}
	name, ok := httpheader.ChooseEncoding(r.Header.Values("Accept-Encoding"), offer...)
	if !ok {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Op: "negotiate", Status: http.StatusNotAcceptable,
			Message: "Accept-Encoding excludes identity, and of the content codings on offer it allows none; available: " +
				strings.Join(append(offer, "identity"), ", "),
		}
	}
	for _, c := range contentCodings {
		if c.name == name {
			return c, nil
		}
	}
	return nil, nil
}

// A StreamCoding adds what the content coding of one stream needs around its frames: a header, a checksum of all frames, and a trailer.
// [OpenResponse] does this by itself; a transport that writes to a connection needs a StreamCoding per stream. It is not safe for
// concurrent use. A nil StreamCoding is for streams that need neither header nor trailer: its methods do nothing.
type StreamCoding struct {
	encoder *Encoder
	sum     compress.Checksum
}

// NewStreamCoding returns a StreamCoding for the frames of c. It is nil if the coding of c needs none, or c is nil.
func (c *Encoder) NewStreamCoding() *StreamCoding {
	if c == nil || !c.summed() {
		return nil
	}
	return &StreamCoding{encoder: c}
}

// Header returns the bytes to write before the first frame. It may be nil.
func (s *StreamCoding) Header() []byte {
	if s == nil {
		return nil
	}
	return s.encoder.envelop(nil, []byte(compress.GzipHeader))
}

// Apply must be called with all frames of the stream, in order, just before they are written. It replaces the elements of the slice by
// the bytes to write, and does not modify the frames, which are shared.
func (s *StreamCoding) Apply(frames [][]byte) {
	if s == nil {
		return
	}
	for i, f := range frames {
		s.sum.Add(f)
		frames[i] = f[compress.ChecksumSize:]
	}
}

// Trailer returns the bytes to write at the end of a stream that is complete. It may be nil.
func (s *StreamCoding) Trailer() []byte {
	if s == nil {
		return nil
	}
	return s.encoder.envelop(nil, s.sum.AppendTrailer(nil))
}

// WithoutCompression returns a copy of r that accepts no compression: neither a content coding nor permessage-deflate.
func WithoutCompression(r *http.Request) *http.Request {
	r = r.WithContext(r.Context()) // a copy
	r.Header = r.Header.Clone()
	r.Header.Del("Accept-Encoding")
	r.Header.Del("Sec-WebSocket-Extensions")
	return r
}
