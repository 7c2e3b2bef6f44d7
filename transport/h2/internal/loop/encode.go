package loop

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

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
func (s *stream) writeHeaders(status int, h http.Header, end bool) {
	c := s.c
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
	c.out.headers(s.id, c.encoded, end, int(c.peerFrame))
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

// sendInformational sends a status of 1xx with the current header.
func (e *exchange) sendInformational(status int) {
	c := e.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.st.err != nil || e.headSent {
		return
	}
	if status == http.StatusContinue {
		e.expects = false
	}
	h := maps.Clone(e.response.header)
	delete(h, "Content-Length") // RFC 9110, section 8.6
	e.st.writeHeaders(status, h, false)
	c.wakeWriter()
}

// sendContinue sends 100 Continue if the client expects it and has no response yet.
func (e *exchange) sendContinue() {
	if !e.expects || e.headSent || e.st.err != nil {
		return
	}
	e.expects = false
	e.st.writeHeaders(http.StatusContinue, nil, false)
	e.st.c.wakeWriter()
}
