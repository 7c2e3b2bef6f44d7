package loop

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A response is the state of an HTTP response that the handler is writing. It belongs to the
// handler's goroutine.
type response struct {
	header   http.Header
	status   int         // zero before WriteHeader
	snapshot http.Header // a copy of the header at WriteHeader; nil after it was sent
	declared int64       // Content-Length; -1 if it is not set
	written  int64
	sent     bool // the head was sent
	buf      []byte
	trailers []string // the names in the header Trailer
	gone     chan bool
}

// bufferSize is the number of bytes that are collected before they are sent.
const bufferSize = 4 << 10

// sniffSize is the number of bytes that determine the Content-Type of a body.
const sniffSize = 512

var responseBuffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

var (
	_ http.ResponseWriter = (*exchange)(nil)
	_ http.Flusher        = (*exchange)(nil)
)

// Header implements http.ResponseWriter.
func (x *exchange) Header() http.Header { return x.response.header }

// WriteHeader implements http.ResponseWriter. It sends a status of 1xx at once.
func (x *exchange) WriteHeader(status int) {
	r := &x.response
	if r.status != 0 || x.taken {
		return
	}
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	switch {
	case x.upgrade && status == http.StatusSwitchingProtocols:
		x.acceptTunnel(r.header)
		return
	case x.upgrade && status/100 == 2:
		status = http.StatusNotImplemented // 2xx would accept an upgrade that the handler ignores
	case status < 200:
		x.sendInformational(status)
		return
	}
	r.status = status
	r.snapshot = r.header.Clone()
	r.declared = -1
	if v := r.snapshot.Get("Content-Length"); v != "" {
		n, err := strconv.ParseUint(v, 10, 63)
		if err != nil {
			r.snapshot.Del("Content-Length")
			return
		}
		r.declared = int64(n)
	}
}

// Write implements http.ResponseWriter. It returns when all but a few bytes are in the
// connection's buffer.
func (x *exchange) Write(p []byte) (int, error) {
	r := &x.response
	if x.taken {
		return 0, http.ErrHijacked
	}
	if r.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if !bodyAllowed(r.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if r.declared >= 0 && r.written+int64(len(p)) > r.declared {
		return 0, http.ErrContentLength
	}
	r.written += int64(len(p))
	if x.head {
		if len(r.buf) == 0 {
			r.buf = append(r.buf, p[:min(len(p), sniffSize)]...)
		}
		return len(p), nil
	}
	if len(r.buf)+len(p) <= bufferSize {
		if r.buf == nil {
			r.buf = responseBuffers.Get().(*[bufferSize]byte)[:0]
		}
		r.buf = append(r.buf, p...)
		return len(p), nil
	}
	if err := x.sendBody(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (x *exchange) WriteString(s string) (int, error) { return x.Write([]byte(s)) }

// Flush implements http.Flusher.
func (x *exchange) Flush() { _ = x.FlushError() }

// FlushError is for http.ResponseController.
func (x *exchange) FlushError() error {
	if x.taken {
		return http.ErrHijacked
	}
	if x.response.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return x.sendBody(nil, false)
}

// sendBody sends the head unless it was sent, then the buffer, then p.
func (x *exchange) sendBody(p []byte, end bool) error {
	r := &x.response
	hasTrailers := end && len(x.trailerFields()) > 0
	sample := r.buf
	if len(sample) == 0 {
		sample = p
	}
	if x.head {
		r.buf, p = nil, nil // only the head is sent, as in the response to a GET
	}
	if !r.sent {
		ended := end && !hasTrailers && len(r.buf)+len(p) == 0
		if err := x.sendHead(sample, end, ended); err != nil || ended {
			return err
		}
	}
	if end || len(r.buf)+len(p) > 0 {
		if !hasTrailers || len(r.buf)+len(p) > 0 {
			if err := x.st.send([][]byte{r.buf, p}, end && !hasTrailers, true, false); err != nil {
				return err
			}
		}
		r.buf = r.buf[:0]
	}
	if hasTrailers {
		return x.sendTrailers()
	}
	return nil
}

// finish completes the response after the handler has returned.
func (x *exchange) finish() {
	if x.taken {
		return
	}
	r := &x.response
	if r.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if r.declared >= 0 && r.written < r.declared && !x.head && bodyAllowed(r.status) {
		panic(http.ErrAbortHandler) // the client would wait for the rest
	}
	_ = x.sendBody(nil, true) // an error means that the stream has failed
	if cap(r.buf) == bufferSize {
		responseBuffers.Put((*[bufferSize]byte)(r.buf[:bufferSize]))
		r.buf = nil
	}
}

// SetReadDeadline is for http.ResponseController.
func (x *exchange) SetReadDeadline(at time.Time) error {
	x.st.c.mu.Lock()
	defer x.st.c.mu.Unlock()
	x.setReadDeadline(at)
	return nil
}

// SetWriteDeadline is for http.ResponseController. When the deadline passes, the stream is reset.
func (x *exchange) SetWriteDeadline(at time.Time) error {
	x.st.c.mu.Lock()
	defer x.st.c.mu.Unlock()
	x.setWriteDeadline(at)
	return nil
}

// EnableFullDuplex is for http.ResponseController. HTTP/2 is always full duplex.
func (x *exchange) EnableFullDuplex() error { return nil }

// CloseNotify implements http.CloseNotifier, which is deprecated. Middleware of Kubernetes hides
// the http.Flusher of a writer that does not implement http.CloseNotifier.
func (x *exchange) CloseNotify() <-chan bool {
	r := &x.response
	if r.gone == nil {
		gone := make(chan bool, 1)
		r.gone = gone
		context.AfterFunc(x.ctx, func() { gone <- true })
	}
	return r.gone
}

// bodyAllowed reports whether a response with the status may have a body (RFC 9110, section 6.4.1).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
