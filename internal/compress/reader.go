package compress

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// The names of the content codings (RFC 9110, section 8.4.1).
const (
	Gzip = "gzip"
	Zstd = "zstd"
)

// CodingOf returns the content codings in h, the headers of a response, or an empty string if there
// are none.
func CodingOf(h http.Header) string {
	name := strings.ToLower(strings.Join(h.Values("Content-Encoding"), ", "))
	switch name {
	case "identity":
		return ""
	case "x-gzip": // RFC 9110, section 8.4.1.3
		return Gzip
	}
	return name
}

// readBuffer is the size of the read buffer of a decoder.
const readBuffer = 4 << 10

// A Reader decompresses a stream. It returns all available data before it reads more. It
// keeps at most one window of the data: 32 KiB for gzip, at most 8 MiB for zstd. It is not
// safe for concurrent use.
type Reader struct {
	name    string
	in      countingReader
	buf     *bufio.Reader
	decoder io.Reader
	// complete is the value of decoded() when the decoder last returned data, or last read the
	// header or the end of a gzip member. Any bytes decoded since then are not decompressed yet.
	complete int64
}

// NewReader returns a Reader for a stream in the given content coding. It does not read yet. An
// unknown coding is an error.
func NewReader(name string, r io.Reader) (*Reader, error) {
	c := &Reader{name: name, in: countingReader{r: r}}
	c.buf = bufio.NewReaderSize(&c.in, readBuffer)
	switch name {
	case Gzip:
		c.decoder = &gzipMembers{c: c}
	case Zstd:
		z, err := newZstd(c.buf)
		if err != nil {
			return nil, err
		}
		c.decoder = zstdFrames{z, c}
	default:
		return nil, errors.New("unknown content coding " + name)
	}
	return c, nil
}

// A CorruptError reports data that violates its content coding.
type CorruptError struct {
	// Coding is the name of the content coding.
	Coding string
	// Err is the error of the decoder.
	Err error
}

// Error returns the name of the coding and the error of the decoder.
func (e *CorruptError) Error() string {
	return "invalid " + e.Coding + " data: " + e.Err.Error()
}

// Read returns [io.EOF] if the stream ended at a position where the coding is complete, and
// [io.ErrUnexpectedEOF] if it ended elsewhere. Errors of the stream are returned unchanged.
// Any other error is a [*CorruptError].
func (r *Reader) Read(p []byte) (int, error) {
	for {
		n, err := r.decoder.Read(p)
		if n > 0 {
			r.markComplete()
			return n, nil // the decoder returns err again at the next call
		}
		if err != nil || len(p) == 0 {
			return 0, r.classify(err)
		}
	}
}

func (r *Reader) classify(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || r.in.err != nil &&
		errors.Is(err, r.in.err) {
		return err
	}
	return &CorruptError{r.name, err}
}

// Incomplete reports whether the decoder holds compressed bytes that it has not
// decompressed yet.
func (r *Reader) Incomplete() bool { return r.decoded() > r.complete }

func (r *Reader) markComplete() { r.complete = r.decoded() }

// decoded returns the number of compressed bytes that the decoder has read.
func (r *Reader) decoded() int64 { return r.in.read - int64(r.buf.Buffered()) }

// A countingReader counts the bytes read, and keeps the last error. While many bytes arrive, it
// reads large pieces, because an HTTP/2 client opens its window with each read.
type countingReader struct {
	r    io.Reader
	read int64
	err  error

	burst    *burst // nil if it has no unread bytes, as in an idle stream
	wasLarge bool   // the last read of r has filled its buffer, so more bytes have probably arrived
}

// A burst is a large piece of a stream: data[pos:end], and then err.
type burst struct {
	data     [64 << 10]byte
	pos, end int
	err      error
}

var bursts = sync.Pool{New: func() any { return new(burst) }}

func (r *countingReader) Read(p []byte) (n int, err error) {
	if r.burst == nil && r.wasLarge && r.err == nil {
		b := bursts.Get().(*burst)
		b.pos = 0
		b.end, b.err = r.r.Read(b.data[:])
		r.burst, r.wasLarge = b, b.end == len(b.data)
	}
	if b := r.burst; b != nil {
		n = copy(p, b.data[b.pos:b.end])
		if b.pos += n; b.pos == b.end {
			r.burst, r.err, b.err = nil, b.err, nil
			bursts.Put(b)
		}
	} else {
		n, r.err = r.r.Read(p)
		r.wasLarge = n == len(p)
	}
	r.read += int64(n)
	return n, r.err
}

// gzipMembers reads concatenated gzip members (RFC 1952, section 2.2). A gzip.Reader can
// read them as well, but it returns the end of a member only after the next member has
// started. In a watch that would delay each event until the next one.
type gzipMembers struct {
	c    *Reader
	gzip gzip.Reader
	open bool // gzip is within a member
}

func (m *gzipMembers) Read(p []byte) (int, error) {
	if !m.open {
		if _, err := m.c.buf.Peek(1); err != nil {
			return 0, err
		}
		if err := m.gzip.Reset(m.c.buf); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		m.gzip.Multistream(false)
		m.open = true
		m.c.markComplete()
	}
	n, err := m.gzip.Read(p)
	if errors.Is(err, io.EOF) {
		m.open, err = false, nil
		m.c.markComplete()
	}
	return n, err
}
