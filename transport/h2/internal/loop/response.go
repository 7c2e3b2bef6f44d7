package loop

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// sniffSize is the number of bytes that determine the Content-Type of a body.
const sniffSize = 512

// A response is the http.ResponseWriter of an exchange. It belongs to the handler's goroutine.
type response struct {
	x        *exchange
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

var (
	_ http.ResponseWriter = (*response)(nil)
	_ http.Flusher        = (*response)(nil)
)

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter. It sends a status of 1xx at once.
func (r *response) WriteHeader(status int) {
	if r.status != 0 || r.x.taken {
		return
	}
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	switch {
	case r.x.upgrade && status == http.StatusSwitchingProtocols:
		r.acceptTunnel(r.header)
		return
	case r.x.upgrade && status/100 == 2:
		status = http.StatusNotImplemented // 2xx would accept an upgrade that the handler ignores
	case status < 200:
		r.sendInformational(status)
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
func (r *response) Write(p []byte) (int, error) {
	if r.x.taken {
		return 0, http.ErrHijacked
	}
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if !bodyAllowed(r.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if r.declared >= 0 && r.written+int64(len(p)) > r.declared {
		return 0, http.ErrContentLength
	}
	r.written += int64(len(p))
	if r.x.head {
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
	if err := r.sendBody(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (r *response) WriteString(s string) (int, error) { return r.Write([]byte(s)) }

// Flush implements http.Flusher.
func (r *response) Flush() { _ = r.FlushError() }

// FlushError is for http.ResponseController.
func (r *response) FlushError() error {
	if r.x.taken {
		return http.ErrHijacked
	}
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	return r.sendBody(nil, false)
}

// sendBody sends the head unless it was sent, then the buffer, then p.
func (r *response) sendBody(p []byte, end bool) error {
	hasTrailers := end && !r.x.head && len(r.trailerFields()) > 0
	sample := r.buf
	if len(sample) == 0 {
		sample = p
	}
	if r.x.head {
		r.buf, p = nil, nil // only the head is sent, as in the response to a GET
	}
	if !r.sent {
		ended := end && !hasTrailers && len(r.buf)+len(p) == 0
		if err := r.sendHead(sample, end, ended); err != nil || ended {
			return err
		}
	}
	if end || len(r.buf)+len(p) > 0 {
		if !hasTrailers || len(r.buf)+len(p) > 0 {
			if err := r.x.st.send([][]byte{r.buf, p}, end && !hasTrailers, true, false); err != nil {
				return err
			}
		}
		r.buf = r.buf[:0]
	}
	if hasTrailers {
		return r.sendTrailers()
	}
	return nil
}

// finish completes the response after the handler has returned.
func (r *response) finish() {
	if r.x.taken {
		return
	}
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.declared >= 0 && r.written < r.declared && !r.x.head && bodyAllowed(r.status) {
		panic(http.ErrAbortHandler) // the client would wait for the rest
	}
	_ = r.sendBody(nil, true) // an error means that the stream has failed
	if cap(r.buf) == bufferSize {
		responseBuffers.Put((*[bufferSize]byte)(r.buf[:bufferSize]))
		r.buf = nil
	}
}

// EnableFullDuplex is for http.ResponseController. HTTP/2 is always full duplex.
func (r *response) EnableFullDuplex() error { return nil }

// CloseNotify implements http.CloseNotifier, which is deprecated. Middleware of Kubernetes hides
// the http.Flusher of a writer that does not implement http.CloseNotifier.
func (r *response) CloseNotify() <-chan bool {
	if r.gone == nil {
		gone := make(chan bool, 1)
		r.gone = gone
		context.AfterFunc(r.x.ctx, func() { gone <- true })
	}
	return r.gone
}

// SetReadDeadline is for http.ResponseController.
func (r *response) SetReadDeadline(at time.Time) error {
	r.x.st.c.mu.Lock()
	defer r.x.st.c.mu.Unlock()
	r.x.setReadDeadline(at)
	return nil
}

// SetWriteDeadline is for http.ResponseController. When the deadline passes, the stream is reset.
func (r *response) SetWriteDeadline(at time.Time) error {
	r.x.st.c.mu.Lock()
	defer r.x.st.c.mu.Unlock()
	r.x.setWriteDeadline(at)
	return nil
}
