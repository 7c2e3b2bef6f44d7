// Package connio contains code that several transports use to write to a connection: a write
// deadline that is moved rarely, batched writes, and socket options.
package connio

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"sync"

	"github.com/listwatch/listwatch"
)

// A Reader reads from a connection. It may have a buffer.
type Reader interface {
	io.Reader
	// Buffered returns the number of bytes that can be read without reading the connection.
	Buffered() int
}

// ErrSenderClosed is the error that Send returns after Close.
var ErrSenderClosed error = &listwatch.Error{
	Code: listwatch.Unavailable, Op: "send", Message: "the stream is closed", Err: net.ErrClosed,
}

// ErrReceiverClosed is the error that Receive returns after Close.
var ErrReceiverClosed error = &listwatch.Error{
	Code: listwatch.Unavailable, Op: "receive", Message: "the receiver was closed", Err: net.ErrClosed,
}

// SendError returns the error for a Send whose write failed with err.
func SendError(err error) error {
	return &listwatch.Error{Code: listwatch.Unavailable, Op: "send", Err: err}
}

// MaxWrite is the maximum number of bytes of one write.
const MaxWrite = 64 << 10

var batches = sync.Pool{New: func() any { return new([MaxWrite]byte) }}

// WriteBatched passes the frames in order to write, in pieces of at most [MaxWrite] bytes. It
// copies small frames into one buffer. A single frame is not copied. write must not keep its
// argument. WriteBatched stops at the first error.
func WriteBatched(frames [][]byte, write func(p []byte) error) error {
	if len(frames) == 1 {
		return writePieces(frames[0], write)
	}
	batch := batches.Get().(*[MaxWrite]byte)
	defer batches.Put(batch)
	n := 0
	for _, f := range frames {
		if len(f) > MaxWrite-n && n > 0 {
			if err := write(batch[:n]); err != nil {
				return err
			}
			n = 0
		}
		if len(f) > MaxWrite {
			if err := writePieces(f, write); err != nil {
				return err
			}
			continue
		}
		n += copy(batch[n:], f)
	}
	if n == 0 {
		return nil
	}
	return write(batch[:n])
}

// writePieces writes p in pieces that a slow peer can accept within the write timeout.
func writePieces(p []byte, write func(p []byte) error) error {
	for len(p) > 0 {
		n := min(len(p), MaxWrite)
		if err := write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// ReleaseBuffer frees the buffer of r, the reader of the hijacked connection conn. Otherwise
// net/http would keep the buffer until the handler returns. r must not be used afterwards. A conn
// that is neither TCP nor TLS may read through r, so in this case r keeps its buffer.
func ReleaseBuffer(conn net.Conn, r *bufio.Reader) {
	_, isTLS := conn.(*tls.Conn)
	if _, isTCP := TCP(conn); isTCP || isTLS {
		*r = *bufio.NewReaderSize(nil, 0)
	}
}
