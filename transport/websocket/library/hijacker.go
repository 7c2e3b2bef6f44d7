package library

import (
	"bufio"
	"maps"
	"net"
	"net/http"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A hijacker is the http.ResponseWriter of a handshake. It keeps the connection below the library,
// and discards a response with which the library refuses the handshake.
type hijacker struct {
	http.ResponseWriter
	header http.Header
	conn   net.Conn
}

// Header implements http.ResponseWriter.
func (h *hijacker) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *hijacker) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols {
		clear(h.ResponseWriter.Header())
		maps.Copy(h.ResponseWriter.Header(), h.header)
		h.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (h *hijacker) Write(p []byte) (int, error) { return len(p), nil }

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffers, err := h.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		connio.TuneTCP(c)
		h.conn = c
	}
	return c, buffers, err
}
