package loop

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// sniffSize is the number of bytes that determine the Content-Type of a body.
const sniffSize = 512

var (
	_ http.ResponseWriter = (*exchange)(nil)
	_ http.Flusher        = (*exchange)(nil)
)

// Header implements http.ResponseWriter.
func (e *exchange) Header() http.Header { return e.response.header }

// WriteHeader implements http.ResponseWriter. It sends a status of 1xx at once.
func (e *exchange) WriteHeader(status int) {
	r := &e.response
	if r.status != 0 || e.taken {
		return
	}
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	switch {
	case e.upgrade && status == http.StatusSwitchingProtocols:
		e.acceptTunnel(r.header)
		return
	case e.upgrade && status/100 == 2:
		status = http.StatusNotImplemented // 2xx would accept an upgrade that the handler ignores
	case status < 200:
		e.sendInformational(status)
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
func (e *exchange) Write(p []byte) (int, error) {
	r := &e.response
	if e.taken {
		return 0, http.ErrHijacked
	}
	if r.status == 0 {
		e.WriteHeader(http.StatusOK)
	}
	if !bodyAllowed(r.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if r.declared >= 0 && r.written+int64(len(p)) > r.declared {
		return 0, http.ErrContentLength
	}
	r.written += int64(len(p))
	if e.head {
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
	if err := e.sendBody(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (e *exchange) WriteString(s string) (int, error) { return e.Write([]byte(s)) }

// Flush implements http.Flusher.
func (e *exchange) Flush() { _ = e.FlushError() }

// FlushError is for http.ResponseController.
func (e *exchange) FlushError() error {
	if e.taken {
		return http.ErrHijacked
	}
	if e.response.status == 0 {
		e.WriteHeader(http.StatusOK)
	}
	return e.sendBody(nil, false)
}

// sendBody sends the head unless it was sent, then the buffer, then p.
func (e *exchange) sendBody(p []byte, end bool) error {
	r := &e.response
	hasTrailers := end && !e.head && len(e.trailerFields()) > 0
	sample := r.buf
	if len(sample) == 0 {
		sample = p
	}
	if e.head {
		r.buf, p = nil, nil // only the head is sent, as in the response to a GET
	}
	if !r.sent {
		ended := end && !hasTrailers && len(r.buf)+len(p) == 0
		if err := e.sendHead(sample, end, ended); err != nil || ended {
			return err
		}
	}
	if end || len(r.buf)+len(p) > 0 {
		if !hasTrailers || len(r.buf)+len(p) > 0 {
			if err := e.st.send([][]byte{r.buf, p}, end && !hasTrailers, true, false); err != nil {
				return err
			}
		}
		r.buf = r.buf[:0]
	}
	if hasTrailers {
		return e.sendTrailers()
	}
	return nil
}

// finish completes the response after the handler has returned.
func (e *exchange) finish() {
	if e.taken {
		return
	}
	r := &e.response
	if r.status == 0 {
		e.WriteHeader(http.StatusOK)
	}
	if r.declared >= 0 && r.written < r.declared && !e.head && bodyAllowed(r.status) {
		panic(http.ErrAbortHandler) // the client would wait for the rest
	}
	_ = e.sendBody(nil, true) // an error means that the stream has failed
	if cap(r.buf) == bufferSize {
		responseBuffers.Put((*[bufferSize]byte)(r.buf[:bufferSize]))
		r.buf = nil
	}
}

// EnableFullDuplex is for http.ResponseController. HTTP/2 is always full duplex.
func (e *exchange) EnableFullDuplex() error { return nil }

// CloseNotify implements http.CloseNotifier, which is deprecated. Middleware of Kubernetes hides
// the http.Flusher of a writer that does not implement http.CloseNotifier.
func (e *exchange) CloseNotify() <-chan bool {
	r := &e.response
	if r.gone == nil {
		gone := make(chan bool, 1)
		r.gone = gone
		context.AfterFunc(e.ctx, func() { gone <- true })
	}
	return r.gone
}
