package transport

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
)

// coding returns the content coding of a response with the headers h; empty: none. One that r did not ask for is an error.
func (r *Request) coding(h http.Header) (string, error) {
	name := codingOf(h)
	if name != "" && !slices.Contains(r.Codings, name) {
		return "", &listwatch.Error{
			Code: listwatch.Unsupported, Message: "the stream has the content coding " + excerpt(name) + ", which was not asked for",
		}
	}
	return name, nil
}

// codingOf returns the content coding that h names, all of them where there are more; empty: none.
func codingOf(h http.Header) string {
	name := strings.ToLower(strings.Join(h.Values("Content-Encoding"), ", "))
	switch name {
	case "identity":
		return ""
	case "x-gzip":
		return compress.Gzip
	}
	return name
}

// besides is how many bytes, beside those of an event, may be decompressed before there is an event: heartbeats and space, for days.
const besides = 1 << 20

// A codedBody decompresses a body, and bounds what comes out where no event does: a few bytes can become gigabytes of spaces.
type codedBody struct {
	// Immutable after construction.
	name  string
	r     *compress.Reader
	limit int64

	left  int64 // bytes until the limit
	short bool  // the body has ended where the coding may not
}

func newCodedBody(name string, raw io.Reader, limit int) (*codedBody, error) {
	if limit <= 0 {
		limit = framing.DefaultLimit
	}
	r, err := compress.NewReader(name, raw)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Err: err}
	}
	return &codedBody{name: name, r: r, limit: int64(limit) + besides}, nil
}

// renew grants another event its bytes.
func (b *codedBody) renew() { b.left = b.limit }

// within reports whether a part of the coding has come that is not complete.
func (b *codedBody) within() bool { return b != nil && b.r.Incomplete() }

// incomplete returns an error where the body has ended and the coding has not; within says that this is within an event.
func (b *codedBody) incomplete(within bool) error {
	if b == nil || !b.short {
		return nil
	}
	var cause error
	if within {
		cause = io.ErrUnexpectedEOF
	}
	return broken("the "+b.name+" coding is not complete", cause)
}

// Read returns io.EOF where the body ends, as a streamBody does, and the decoder tells whether that is within an event.
func (b *codedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, broken(fmt.Sprintf("%d bytes of %s hold no event", b.limit, b.name), nil)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		b.short = true
		return n, io.EOF
	}
	return n, broken("", err)
}

func broken(message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Message: message, Err: cause}
}
