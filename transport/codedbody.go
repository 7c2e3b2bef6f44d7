package transport

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
)

// codingFor returns the content coding of a response with the headers h, or an empty string
// if there is none. If r does not accept the coding, it returns an error.
func (r *Request) codingFor(h http.Header) (string, error) {
	name := compress.CodingOf(h)
	if name != "" && !slices.Contains(r.Codings, name) {
		return "", &listwatch.Error{
			Code:    listwatch.Unsupported,
			Message: "the response has the content coding " + excerpt(name) + ", which was not requested",
		}
	}
	return name, nil
}

// maxIdleBytes is the maximum size of the decompressed heartbeats and white space between two
// events. It is enough for days of heartbeats. The limit of an event is added to it.
const maxIdleBytes = 1 << 20

// A codedBody decompresses a body. It limits the number of decompressed bytes until the end of the
// next event, because a few compressed bytes can expand to gigabytes of white space.
type codedBody struct {
	// Immutable after construction.
	name  string
	r     *compress.Reader
	limit int64

	// left is the number of bytes that may still be read before the next event is complete.
	left int64
	// truncated is true if the body ended at a position where the coding is incomplete.
	truncated bool
}

func newCodedBody(name string, raw io.Reader, limit int) (*codedBody, error) {
	r, err := compress.NewReader(name, raw)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unsupported, Err: err}
	}
	event := int64(framing.LimitOrDefault(limit))
	// The sum may overflow.
	return &codedBody{name: name, r: r, limit: max(event, event+maxIdleBytes)}, nil
}

// truncationError returns an error if the body ended at a position where the coding is
// incomplete. withinEvent is true if that position is within an event.
func (b *codedBody) truncationError(withinEvent bool) error {
	if b == nil || !b.truncated {
		return nil
	}
	var cause error
	if withinEvent {
		cause = io.ErrUnexpectedEOF
	}
	return corruptError("the "+b.name+" data is truncated", cause)
}

// Read returns io.EOF even if the body is truncated, as a [streamBody] does. The decoder of the
// framing then reports whether the end is within an event, and truncationError reports the
// truncation.
func (b *codedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, corruptError(fmt.Sprintf("%d bytes of decompressed %s data contain no event", b.limit, b.name), nil)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		b.truncated = true
		return n, io.EOF
	}
	return n, corruptError("", err)
}

func corruptError(message string, cause error) *listwatch.Error {
	return &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Message: message, Err: cause}
}
