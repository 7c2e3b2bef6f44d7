package transport

import (
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/httpheader"
)

// A contentCoding compresses each event into a frame of its own (RFC 9110, section 8.4.1). It is
// part of the wire form, so all streams of a wire form share the compressed frames.
type contentCoding struct {
	name     string
	compress func(dst, p []byte) []byte
	// checksummed is true if the coding ends a stream with a checksum of all its data. Each frame
	// then starts with the checksum of its text. The checksums of frames never reach the wire: see
	// [contentCoding.appendChecksum], [Encoder.WireSize] and [StreamCoding.Apply].
	checksummed bool
	// sharesHistory is true if a frame may refer to the text of earlier frames of its segment. It
	// is false for zstd, although zstd permits such frames, because its window would cost the
	// client ten times the memory.
	sharesHistory bool
}

// contentCodings are the codings that servers offer, in the order of [Codings]. gzip wins if the
// client prefers both equally, because its frames are as small as zstd's and all decoders read its
// streams. A zstd stream is a sequence of zstd frames. Some decoders, such as the one in Node.js,
// stop at the end of a zstd frame if more frames follow in the same read.
var contentCodings = []*contentCoding{
	{name: compress.Gzip, compress: compress.AppendDeflate, checksummed: true, sharesHistory: true},
	{name: compress.Zstd, compress: compress.AppendZstd},
}

// initialBlocks is gzip with [Options].InitialBlocks.
var initialBlocks = &contentCoding{name: compress.Gzip, compress: compress.AppendStored, checksummed: true}

// appendChecksum appends the checksum of text, the first part of a frame in the coding c. It
// appends nothing if the coding has no checksum.
func (c *contentCoding) appendChecksum(dst, text []byte) []byte {
	if c == nil || !c.checksummed {
		return dst
	}
	return compress.AppendChecksum(dst, text)
}

// WireSize returns the number of bytes that a frame of e takes on the wire.
func (e Encoder) WireSize(frame []byte) int {
	if e.coding != nil && e.coding.checksummed {
		return len(frame) - compress.ChecksumSize
	}
	return len(frame)
}

// Codings returns the names of the supported content codings. gzip is first, because clients should
// prefer it: only gzip frames can refer to earlier events. If the server does not permit such
// references (see [Options].Segments), zstd costs the client less CPU time. The caller may modify
// the slice.
func Codings() []string { return []string{compress.Gzip, compress.Zstd} }

// negotiateCoding chooses the content coding of the response to r, and sets Vary in h, the headers
// of the response. It returns nil for no coding.
func negotiateCoding(h http.Header, r *http.Request) (*contentCoding, error) {
	if _, coded := h["Content-Encoding"]; coded {
		return nil, nil // middleware compresses the response
	}
	if !slices.Contains(h.Values("Vary"), "Accept-Encoding") {
		h.Add("Vary", "Accept-Encoding")
	}
	offer := Codings()
	name, ok := httpheader.ChooseEncoding(r.Header.Values("Accept-Encoding"), offer...)
	if !ok {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported, Op: "negotiate", Status: http.StatusNotAcceptable,
			Message: "Accept-Encoding excludes identity and all content codings on offer; available: " +
				strings.Join(append(offer, "identity"), ", "),
		}
	}
	if i := slices.Index(Codings(), name); i >= 0 {
		return contentCodings[i], nil
	}
	return nil, nil
}

// A StreamCoding adds the header and the trailer of a content coding to one stream, and computes
// the checksum over its frames. A [Conn] and the Sender of [OpenResponse] have one. It is not safe
// for concurrent use. A nil StreamCoding is valid and does nothing, because some codings have no
// header and no trailer.
type StreamCoding struct {
	encoder  Encoder
	checksum compress.Checksum
}

// NewStreamCoding returns a StreamCoding for the frames of e. It returns nil if the coding of e has
// no header and no trailer.
func (e Encoder) NewStreamCoding() *StreamCoding {
	if e.coding == nil || !e.coding.checksummed {
		return nil
	}
	return &StreamCoding{encoder: e}
}

// Header returns the bytes to write before the first frame. It may be nil.
func (s *StreamCoding) Header() []byte {
	if s == nil {
		return nil
	}
	return s.encoder.envelop(nil, []byte(compress.GzipHeader))
}

// Apply must be called with all frames of the stream, in order, just before they are
// written. It replaces the elements of the slice with the bytes to write. It does not
// modify the frames, which other streams share.
func (s *StreamCoding) Apply(frames [][]byte) {
	if s == nil {
		return
	}
	for i, f := range frames {
		s.checksum.Add(f)
		frames[i] = f[compress.ChecksumSize:]
	}
}

// Trailer returns the bytes to write at the end of a stream that is complete. It may be nil.
func (s *StreamCoding) Trailer() []byte {
	if s == nil {
		return nil
	}
	return s.encoder.envelop(nil, s.checksum.AppendTrailer(nil))
}

// WithoutCompression returns a copy of r that accepts no compression, neither a content coding
// nor permessage-deflate. Use it where compression could disclose secrets (BREACH).
func WithoutCompression(r *http.Request) *http.Request {
	r = r.WithContext(r.Context()) // a copy
	r.Header = r.Header.Clone()
	r.Header.Del("Accept-Encoding")
	r.Header.Del("Sec-WebSocket-Extensions")
	return r
}
