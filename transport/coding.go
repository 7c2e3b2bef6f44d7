package transport

import (
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/compress"
)

// A contentCoding compresses what a framing makes, event by event: part of the wire form, so that streams of one form share what comes
// out (RFC 9110, section 8.4.1).
type contentCoding struct {
	name     string
	compress func(dst, p []byte) []byte
	// summed: a stream ends with a check of all that it carried. Frames begin with what their part in it is, which a [Body]
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
	name, ok := ChooseCoding(r.Header.Values("Accept-Encoding"), offer...)
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

// A Body is the content coding of one stream: what it begins with, what it carries, and what ends it. It belongs to whoever may
// write. A nil Body is that of streams that need none.
type Body struct {
	encoder *Encoder
	sum     compress.Checksum
}

// NewBody returns the Body of a stream with frames of c, which may be nil.
func (c *Encoder) NewBody() *Body {
	if c == nil || !c.summed() {
		return nil
	}
	return &Body{encoder: c}
}

// Begin returns what is to be written before the first frame; nil: nothing.
func (b *Body) Begin() []byte {
	if b == nil {
		return nil
	}
	return b.encoder.envelop(nil, []byte(compress.GzipHeader))
}

// Take makes of frames what is to be written. It overwrites the slice, and not the frames, which are shared.
func (b *Body) Take(frames [][]byte) {
	if b == nil {
		return
	}
	for i, f := range frames {
		b.sum.Add(f)
		frames[i] = f[compress.ChecksumSize:]
	}
}

// End returns what is to be written at the end of a stream that is complete; nil: nothing.
func (b *Body) End() []byte {
	if b == nil {
		return nil
	}
	return b.encoder.envelop(nil, b.sum.AppendTrailer(nil))
}
