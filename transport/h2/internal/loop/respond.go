package loop

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// encodedWriter receives the output of a connection's hpack.Encoder.
type encodedWriter struct{ c *conn }

func (w encodedWriter) Write(p []byte) (int, error) {
	w.c.encoded = append(w.c.encoded, p...)
	return len(p), nil
}

// writeHeaders sends a header block. The mutex is held from the encoding until the block is in the
// output, so that blocks are sent in the order in which they change the encoder's table.
func (st *stream) writeHeaders(status int, h http.Header, end bool) {
	c := st.c
	c.encoded = responseBuffers.Get().(*[bufferSize]byte)[:0]
	if status > 0 {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)})
	}
	for _, name := range sortedNames(h) {
		lower := strings.ToLower(name)
		if !httpguts.ValidHeaderFieldName(name) || isConnectionField(lower) {
			continue
		}
		for _, v := range h[name] {
			if httpguts.ValidHeaderFieldValue(v) {
				_ = c.encoder.WriteField(hpack.HeaderField{Name: lower, Value: v})
			}
		}
	}
	c.out.headers(st.id, c.encoded, end, int(c.peerFrame))
	if cap(c.encoded) == bufferSize {
		responseBuffers.Put((*[bufferSize]byte)(c.encoded[:bufferSize]))
	}
	c.encoded = nil
}

func sortedNames(h http.Header) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// isConnectionField reports whether HTTP/2 forbids the field (RFC 9113, section 8.2.2).
func isConnectionField(lower string) bool {
	switch lower {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// sendHead sends the status and the header. sample is the beginning of the body, or the whole body
// if complete is true. If end is true, there is no body.
func (x *exchange) sendHead(sample []byte, complete, end bool) error {
	r := &x.response
	h := r.snapshot
	r.snapshot = nil
	r.trailers = declaredTrailers(h, math.MaxInt)
	for name := range h {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			delete(h, name)
		}
	}
	x.setLength(h, sample, complete)
	if _, ok := h["Content-Type"]; !ok && bodyAllowed(r.status) && len(sample) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(sample))
	}
	if _, ok := h["Date"]; !ok {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	closing := httpguts.HeaderValuesContainsToken(h["Connection"], "close")
	r.sent = true

	c := x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.st.err != nil {
		return x.st.err
	}
	x.headSent = true
	x.st.writeHeaders(r.status, h, end)
	if closing {
		c.goAway()
	}
	if end {
		x.st.closeLocal()
	}
	if end || len(sample) == 0 {
		c.wakeWriter() // otherwise the body follows, and wakes the writer
	}
	return nil
}

// setLength sets Content-Length if the length of the body is known.
func (x *exchange) setLength(h http.Header, sample []byte, complete bool) {
	r := &x.response
	_, set := h["Content-Length"]
	switch {
	case !bodyAllowed(r.status):
		// For status 304 it would be optional (RFC 9110, section 8.6), but net/http's client then
		// takes the body for lost.
		delete(h, "Content-Length")
	case set || !complete || len(r.trailers) > 0:
	case x.head:
		if r.written > 0 {
			h.Set("Content-Length", strconv.FormatInt(r.written, 10))
		}
	default:
		h.Set("Content-Length", strconv.Itoa(len(sample)))
	}
}

// sendInformational sends a status of 1xx with the current header.
func (x *exchange) sendInformational(status int) {
	c := x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.st.err != nil || x.headSent {
		return
	}
	if status == http.StatusContinue {
		x.expects = false
	}
	h := maps.Clone(x.response.header)
	delete(h, "Content-Length") // RFC 9110, section 8.6
	x.st.writeHeaders(status, h, false)
	c.wakeWriter()
}

// sendContinue sends 100 Continue if the client expects it and has no response yet.
func (x *exchange) sendContinue() {
	if !x.expects || x.headSent || x.st.err != nil {
		return
	}
	x.expects = false
	x.st.writeHeaders(http.StatusContinue, nil, false)
	x.st.c.wakeWriter()
}

// declaredTrailers returns the names in the header Trailer. It considers limit names at most.
func declaredTrailers(h http.Header, limit int) (names []string) {
	for _, list := range h["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			if limit--; limit < 0 {
				return names
			}
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if httpguts.ValidTrailerHeader(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// trailerFields returns the trailers that the handler has set: the declared ones, and the ones
// with http.TrailerPrefix.
func (x *exchange) trailerFields() http.Header {
	r := &x.response
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

// sendTrailers ends the stream with trailers.
func (x *exchange) sendTrailers() error {
	c := x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.st.err != nil {
		return x.st.err
	}
	x.st.writeHeaders(0, x.trailerFields(), true)
	x.st.closeLocal()
	c.wakeWriter()
	return nil
}
