package apihttp

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/transport"
)

// compressAbove is the size above which a body is compressed for clients that accept gzip.
// Below it, latency matters more than the bytes saved. kube-apiserver uses 128 KiB, for
// networks within a cluster.
const compressAbove = 32 << 10

// noBlocks is the cache of responses to requests that have not passed a gate. It keeps nothing.
var noBlocks = compress.NewBlockCache(0)

// A responseBody is the body of a response that is not a stream. It is compressed if it is
// large and the client accepts gzip. It must be used by one goroutine only.
type responseBody struct {
	w        *deadlineWriter
	code     int
	compress bool
	blocks   *compress.BlockCache
	held     []byte                // the bytes so far, until the body is known to be large
	out      *bufio.Writer         // nil while the bytes are collected in held
	gzip     *compress.BlockWriter // nil if the body is not compressed
	indenter *rawjson.Indenter     // nil if the body is not indented
}

// newResponseBody begins a response to r with the headers in w. A JSON body is indented if the
// query has pretty=true.
func newResponseBody(w http.ResponseWriter, r *http.Request, code int) *responseBody {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	coding, timeout, blocks := "", transport.DefaultWriteTimeout, noBlocks
	a := admittedOf(r)
	if a != nil {
		timeout, blocks = a.gate.Limits().WriteTimeout, a.gate.BlockCache()
	}
	if a == nil || !a.NoCompression {
		// A client that accepts no available coding gets the body uncompressed.
		coding, _ = httpheader.ChooseEncoding(r.Header.Values("Accept-Encoding"), "gzip")
	}
	out := &deadlineWriter{
		ResponseWriter: w, rc: http.NewResponseController(w), timeout: timeout,
		begin: func() (end func(), err error) { return budget.BeginTurn(r.Context(), budget.Large) },
	}
	if a != nil {
		out.answering = a.answering
	}
	b := &responseBody{
		w: out, code: code, compress: coding == "gzip" && h.Get("Content-Encoding") == "", blocks: blocks,
	}
	if h.Get("Content-Type") == jsonType && wantsPretty(r) {
		b.indenter = &rawjson.Indenter{W: responseBytes{b}}
	}
	return b
}

// wantsPretty reports whether the query of r requests indented JSON.
func wantsPretty(r *http.Request) bool {
	if !strings.Contains(r.URL.RawQuery, "pretty") {
		return false
	}
	// As in Kubernetes, a value that is not a boolean means false.
	pretty, err := strconv.ParseBool(QueryOf(r).Get("pretty"))
	return err == nil && pretty
}

// A deadlineWriter limits the duration of each write and not of the whole response, so that it only
// disconnects clients that stop reading. It counts the bytes written. During a write it ends the
// turn of the request (see [budget.Turns]), because the write may block.
type deadlineWriter struct {
	http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration // no limit unless positive
	written int64
	begin   func() (end func(), err error) // begins a turn
	end     func()                         // ends the turn; nil if there is none
	lost    error                          // the error of begin: the request has ended

	answering func() // called before the first write; may be nil
}

func (d *deadlineWriter) beginTurn() error {
	d.end, d.lost = d.begin()
	return d.lost
}

// endTurn ends the turn, and reports whether there was one.
func (d *deadlineWriter) endTurn() bool {
	if d.end == nil {
		return false
	}
	d.end()
	d.end = nil
	return true
}

func (d *deadlineWriter) Write(p []byte) (int, error) {
	if d.answering != nil {
		d.answering()
		d.answering = nil
	}
	if d.timeout > 0 {
		// The error is ignored, because some ResponseWriters have no deadlines.
		_ = d.rc.SetWriteDeadline(time.Now().Add(d.timeout))
	}
	had := d.endTurn()
	n, err := d.ResponseWriter.Write(p)
	d.written += int64(n)
	if had && err == nil {
		err = d.beginTurn()
	}
	return n, err
}

func (b *responseBody) Write(p []byte) (int, error) {
	if b.indenter != nil {
		return b.indenter.Write(p)
	}
	return responseBytes{b}.Write(p)
}

// responseBytes writes to a body without indenting. The indenter of the body writes its output to
// responseBytes.
type responseBytes struct{ *responseBody }

func (b responseBytes) Write(p []byte) (int, error) {
	if b.out == nil {
		if len(b.held)+len(p) <= compressAbove {
			b.held = append(b.held, p...)
			return len(p), nil
		}
		if err := b.beginLarge(); err != nil {
			return 0, err
		}
	}
	if b.gzip != nil {
		return b.gzip.Write(p)
	}
	return b.out.Write(p)
}

// beginLarge writes the headers of a large body and the bytes held so far. It begins a turn, which
// Close ends.
func (b *responseBody) beginLarge() error {
	if err := b.w.beginTurn(); err != nil {
		return err
	}
	if b.compress {
		b.w.Header().Set("Content-Encoding", "gzip")
	}
	b.w.WriteHeader(b.code)
	b.out = bufio.NewWriterSize(b.w, 32<<10)
	if b.compress {
		b.gzip = b.blocks.NewWriter(b.out)
	}
	_, err := responseBytes{b}.Write(b.held)
	b.held = nil
	return err
}

// Close writes the rest of the body. It returns an error if the request has ended before its turn,
// so that nothing was written. If a part was written, Close panics with [http.ErrAbortHandler], so
// that the client does not take that part for the whole. It ignores errors of writing, because the
// client has disconnected.
func (b *responseBody) Close() error {
	defer b.w.endTurn()
	switch {
	case b.w.lost != nil && b.out == nil:
		return b.w.lost
	case b.w.lost != nil:
		panic(http.ErrAbortHandler)
	}
	_ = b.flush()
	return nil
}

func (b *responseBody) flush() error {
	if b.out == nil {
		b.w.Header().Set("Content-Length", strconv.Itoa(len(b.held)))
		b.w.WriteHeader(b.code)
		_, err := b.w.Write(b.held)
		return err
	}
	if b.gzip != nil {
		if err := b.gzip.Close(); err != nil {
			return err
		}
	}
	return b.out.Flush()
}
