package loop

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// A headerEncoder encodes the header blocks of responses.
type headerEncoder struct {
	encoder *hpack.Encoder
	block   []byte // the block that is encoded; nil if none is
}

func (e *headerEncoder) init(tableSize uint32) {
	e.encoder = hpack.NewEncoder(e)
	e.encoder.SetMaxDynamicTableSizeLimit(tableSize)
}

// Write implements io.Writer for the hpack.Encoder.
func (e *headerEncoder) Write(p []byte) (int, error) {
	e.block = append(e.block, p...)
	return len(p), nil
}

// encode returns the header block with the status, unless it is zero, and the fields of h. The
// caller must call release when it has copied the block.
func (e *headerEncoder) encode(status int, h http.Header) []byte {
	e.block = responseBuffers.Get().(*[bufferSize]byte)[:0]
	if status > 0 {
		_ = e.encoder.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)})
	}
	for _, name := range sortedNames(h) {
		lower := strings.ToLower(name)
		if !httpguts.ValidHeaderFieldName(name) || isConnectionField(lower) {
			continue
		}
		for _, v := range h[name] {
			if httpguts.ValidHeaderFieldValue(v) {
				_ = e.encoder.WriteField(hpack.HeaderField{Name: lower, Value: v})
			}
		}
	}
	return e.block
}

func (e *headerEncoder) release() {
	if cap(e.block) == bufferSize {
		responseBuffers.Put((*[bufferSize]byte)(e.block[:bufferSize]))
	}
	e.block = nil
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
