package compress

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// Gzip and Zstd are the names of content codings (RFC 9110, section 8.4.1).
const (
	Gzip = "gzip"
	Zstd = "zstd"
)

// readBuffer is how much of a compressed stream is read ahead.
const readBuffer = 4 << 10

// A Reader reads a compressed stream. It returns what there is before it asks for more, and holds no more than a window of it:
// 32 KiB of gzip, at most 8 MiB of zstd. It has one user.
type Reader struct {
	name    string
	in      source
	buf     *bufio.Reader
	decoder io.Reader
	settled int64 // how many bytes had been decoded when something was last complete
}

// NewReader returns a Reader of a stream in a coding. It reads nothing yet. An unknown coding is an error.
func NewReader(name string, r io.Reader) (*Reader, error) {
	c := &Reader{name: name, in: source{r: r}}
	c.buf = bufio.NewReaderSize(&c.in, readBuffer)
	switch name {
	case Gzip:
		c.decoder = &members{c: c}
	case Zstd:
		z, err := newZstd(c.buf)
		if err != nil {
			return nil, err
		}
		c.decoder = frames{z, c}
	default:
		return nil, errors.New("unknown content coding " + name)
	}
	return c, nil
}

// A BrokenError says that what came is not in the coding.
type CorruptError struct {
	// Coding is its name.
	Coding string
	// Err is what the decoder says.
	Err error
}

// Error returns both.
func (e *CorruptError) Error() string {
	return "the " + e.Coding + " coding is broken: " + e.Err.Error()
}

// Read returns [io.EOF] where the stream has ended and the coding may end, and [io.ErrUnexpectedEOF] where it may not. An error of
// the stream is returned as it is, any other one is a *BrokenError.
func (c *Reader) Read(p []byte) (int, error) {
	for {
		n, err := c.decoder.Read(p)
		if n > 0 {
			c.settle()
			return n, nil // the error comes again
		}
		if err != nil || len(p) == 0 {
			return 0, c.explain(err)
		}
	}
}

func (c *Reader) explain(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || c.in.err != nil && errors.Is(err, c.in.err) {
		return err
	}
	return &CorruptError{c.name, err}
}

// Within reports whether something has begun to come that is not complete.
func (c *Reader) Incomplete() bool { return c.decoded() > c.settled }

func (c *Reader) settle() { c.settled = c.decoded() }

func (c *Reader) decoded() int64 { return c.in.read - int64(c.buf.Buffered()) }

// A source counts what is read, and remembers how that ended.
type source struct {
	r    io.Reader
	read int64
	err  error
}

func (s *source) Read(p []byte) (n int, err error) {
	n, s.err = s.r.Read(p)
	s.read += int64(n)
	return n, s.err
}

// members reads gzip members, one after another (RFC 1952, section 2.2). A gzip.Reader can do that by itself, but then it keeps the
// end of a member until the next one has begun, which is a watch's next event.
type members struct {
	c    *Reader
	gzip gzip.Reader
	open bool // within a member
}

func (m *members) Read(p []byte) (int, error) {
	if !m.open {
		if _, err := m.c.buf.Peek(1); err != nil {
			return 0, err
		}
		if err := m.gzip.Reset(m.c.buf); err != nil {
			return 0, noEOF(err)
		}
		m.gzip.Multistream(false)
		m.open = true
		m.c.settle()
	}
	n, err := m.gzip.Read(p)
	if errors.Is(err, io.EOF) {
		m.open, err = false, nil
		m.c.settle()
	}
	return n, err
}

// noEOF makes an end that comes too early one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
