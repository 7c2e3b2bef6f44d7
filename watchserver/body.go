package watchserver

import (
	"bufio"
	"compress/gzip"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// compressAbove is from how many bytes on a body is compressed for clients that take gzip: below, a round trip costs more than the
// bytes do. kube-apiserver has 128 KiB, for networks within a cluster.
const compressAbove = 32 << 10

// compressors have the fastest level, as kube-apiserver's: JSON shrinks well by any.
var compressors = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		return gzip.NewWriter(nil)
	}
	return z
}}

// A body is that of an answer that is no stream: compressed where it is large and the client takes gzip. It has one user.
type body struct {
	w        http.ResponseWriter
	code     int
	compress bool
	held     []byte        // what has been written while it isn't known whether the body is large
	out      *bufio.Writer // nil: that isn't known
	gzip     *gzip.Writer  // nil: not compressed
}

// newBody begins an answer to r whose headers w has. Each piece of it must be taken within timeout, where that isn't negative.
func newBody(w http.ResponseWriter, r *http.Request, code int, timeout time.Duration) *body {
	h := w.Header()
	if timeout > 0 {
		w = &patient{w, http.NewResponseController(w), timeout}
	}
	h.Add("Vary", "Accept-Encoding")
	// One who takes nothing that there is gets the body as it is.
	coding, _ := transport.ChooseCoding(r.Header.Values("Accept-Encoding"), "gzip")
	return &body{w: w, code: code, compress: coding == "gzip" && h.Get("Content-Encoding") == ""}
}

// A patient writer gives a client some time for each write, not for the whole: one that stops reading is cut off.
type patient struct {
	http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
}

func (p *patient) Write(data []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.timeout)) // not every writer can
	return p.ResponseWriter.Write(data)
}

func (b *body) Write(p []byte) (int, error) {
	if b.out == nil {
		if len(b.held)+len(p) <= compressAbove {
			b.held = append(b.held, p...)
			return len(p), nil
		}
		if err := b.begin(); err != nil {
			return 0, err
		}
	}
	if b.gzip != nil {
		return b.gzip.Write(p)
	}
	return b.out.Write(p)
}

// begin sends the headers of a large body, and what was held back.
func (b *body) begin() error {
	if b.compress {
		b.w.Header().Set("Content-Encoding", "gzip")
	}
	b.w.WriteHeader(b.code)
	b.out = bufio.NewWriterSize(b.w, 32<<10)
	if b.compress {
		b.gzip = compressors.Get().(*gzip.Writer)
		b.gzip.Reset(b.out)
	}
	_, err := b.Write(b.held)
	b.held = nil
	return err
}

// Close sends what is left. An error means that the client is gone.
func (b *body) Close() error {
	if b.out == nil {
		b.w.Header().Set("Content-Length", strconv.Itoa(len(b.held)))
		b.w.WriteHeader(b.code)
		_, err := b.w.Write(b.held)
		return err
	}
	if b.gzip != nil {
		err := b.gzip.Close()
		b.gzip.Reset(nil)
		compressors.Put(b.gzip)
		if err != nil {
			return err
		}
	}
	return b.out.Flush()
}

// WriteBody answers r with code, the headers that w has, and the parts one after the other: compressed, where they are large and the
// client takes gzip. It doesn't keep the parts.
func WriteBody(w http.ResponseWriter, r *http.Request, code int, parts ...[]byte) {
	b := newBody(w, r, code, transport.DefaultWriteTimeout)
	for _, p := range parts {
		if _, err := b.Write(p); err != nil {
			break // the client is gone
		}
	}
	b.Close()
}
