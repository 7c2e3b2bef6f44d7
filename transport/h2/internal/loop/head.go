package loop

import (
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// sendHead sends the status and the header. sample is the beginning of the body, or the whole body
// if complete is true. If end is true, there is no body.
func (r *response) sendHead(sample []byte, complete, end bool) error {
	h := r.snapshot
	r.snapshot = nil
	r.trailers = declaredTrailers(h, math.MaxInt)
	for name := range h {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			delete(h, name)
		}
	}
	r.setLength(h, sample, complete)
	if _, ok := h["Content-Type"]; !ok && bodyAllowed(r.status) && len(sample) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(sample))
	}
	if _, ok := h["Date"]; !ok {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	closing := httpguts.HeaderValuesContainsToken(h["Connection"], "close")
	r.sent = true

	c := r.x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.x.st.err != nil {
		return r.x.st.err
	}
	r.x.headSent = true
	r.x.st.writeHeaders(r.status, h, end)
	if closing {
		c.goAway()
	}
	if end {
		r.x.st.closeLocal()
	}
	if end || len(sample) == 0 {
		c.wakeWriter() // otherwise the body follows, and wakes the writer
	}
	return nil
}

// sendInformational sends a status of 1xx with the current header.
func (r *response) sendInformational(status int) {
	x, c := r.x, r.x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.st.err != nil || x.headSent {
		return
	}
	if status == http.StatusContinue {
		x.expects = false
	}
	h := maps.Clone(r.header)
	delete(h, "Content-Length") // RFC 9110, section 8.6
	x.st.writeHeaders(status, h, false)
	c.wakeWriter()
}

// setLength sets Content-Length if the length of the body is known.
func (r *response) setLength(h http.Header, sample []byte, complete bool) {
	_, set := h["Content-Length"]
	switch {
	case !bodyAllowed(r.status):
		// For status 304 it would be optional (RFC 9110, section 8.6), but net/http's client would
		// then report a missing body.
		delete(h, "Content-Length")
	case set || !complete || len(r.trailers) > 0:
	case r.x.head:
		if r.written > 0 {
			h.Set("Content-Length", strconv.FormatInt(r.written, 10))
		}
	default:
		h.Set("Content-Length", strconv.Itoa(len(sample)))
	}
}

// trailerFields returns the trailers that the handler has set: the declared ones, and the ones
// with http.TrailerPrefix.
func (r *response) trailerFields() http.Header {
	var fields http.Header
	set := func(name string, v []string) {
		if fields == nil {
			fields = http.Header{}
		}
		fields[name] = v
	}
	for name, v := range r.header {
		if after, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			set(http.CanonicalHeaderKey(after), v)
		}
	}
	names := r.trailers
	if !r.sent {
		names = declaredTrailers(r.snapshot, math.MaxInt)
	}
	for _, name := range names {
		if v, ok := r.header[name]; ok {
			set(name, v)
		}
	}
	return fields
}

func (r *response) sendTrailers() error {
	c := r.x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.x.st.err != nil {
		return r.x.st.err
	}
	r.x.st.writeHeaders(0, r.trailerFields(), true)
	r.x.st.closeLocal()
	c.wakeWriter()
	return nil
}

// acceptTunnel accepts an extended CONNECT. It responds with status 200, although the handler's
// status is 101, and with the handler's header h. DATA then carries the bytes of the connection.
func (r *response) acceptTunnel(h http.Header) {
	h = h.Clone()
	h.Del("Sec-Websocket-Accept")
	h.Del("Content-Length")
	r.status, r.snapshot, r.declared = http.StatusOK, h, -1
	_ = r.sendHead(nil, false, false) // the tunnel finds out that the stream has failed
}

// bodyAllowed reports whether a response with the status may have a body (RFC 9110, section 6.4.1).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
