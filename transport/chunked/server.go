package chunked

import (
	"net/http"
	"strconv"

	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A Server serves watches over HTTP/1.1, and over HTTP/1.0 with a body that ends with the
// connection. The zero value is ready to use. It is safe for concurrent use.
type Server struct {
	// DisableHijack makes all watches use the standard path. Otherwise the Server hijacks the
	// connection of a GET over HTTP/1.1 without a body, if the http.ResponseWriter passed to
	// Accept is net/http's own. Middleware that wraps the ResponseWriter gets the standard
	// path, so that it sees the status and the bytes.
	DisableHijack bool
}

var _ transport.Server = Server{}

var (
	// plainEnvelope is for the standard path, where net/http makes the chunks.
	plainEnvelope = &transport.Envelope{}
	// chunkEnvelope makes each event a chunk that can be written to the connection.
	chunkEnvelope = &transport.Envelope{Wrap: appendChunk}
)

func appendChunk(dst, payload []byte, _ bool) []byte {
	dst = strconv.AppendUint(dst, uint64(len(payload)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, payload...)
	return append(dst, "\r\n"...)
}

// Name returns "chunked".
func (Server) Name() string { return "chunked" }

// Claims reports whether r is an HTTP/1 request that does not request an upgrade to WebSocket.
// Other upgrades are ignored, which rfc9110#section-7.8 allows.
func (Server) Claims(r *http.Request) bool {
	return r.ProtoMajor == 1 && !httpheader.RequestsWebSocket(r)
}

// Accept implements [transport.Server]. On the standard path it uses [transport.OpenResponse],
// whose rules then apply to the stream.
func (s Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	h, ok := w.(http.Hijacker)
	lean := ok && !s.DisableHijack && canHijack(w, r) && w.Header().Get("Content-Encoding") == ""
	envelope := plainEnvelope
	if lean {
		envelope = chunkEnvelope
	}
	encoder, err := transport.Negotiate(w, r, o, envelope)
	if err != nil {
		return nil, err
	}
	if lean {
		// Bytes that the client has sent after the request are dropped. The response ends
		// the connection, so a client that pipelines must be prepared to repeat its
		// requests (rfc9112#section-9.3.2).
		if conn, buffers, err := h.Hijack(); err == nil {
			connio.ReleaseBuffer(conn, buffers.Reader)
			return startStream(conn, w.Header(), encoder, o), nil
		}
		// The connection cannot be hijacked, so use the standard path.
		encoder = encoder.WithEnvelope(plainEnvelope)
	}
	return transport.OpenResponse(w, r, o, encoder)
}
