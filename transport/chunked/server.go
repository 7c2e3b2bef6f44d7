package chunked

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/listwatch/listwatch/transport"
)

// A Server serves streams over HTTP/1.1 and, with a body that the end of the connection ends, over HTTP/1.0. The zero Server is ready.
type Server struct {
	// DisableTakeover keeps every stream on the standard path. Otherwise a connection is taken over where the
	// http.ResponseWriter that Accept gets is itself an http.Hijacker; one that merely wraps such a writer is not bypassed,
	// nor is one whose headers have a Content-Encoding, as of compressing middleware.
	DisableTakeover bool
}

var _ transport.Server = Server{}

var (
	// plainEnvelope is for net/http, which makes the chunks.
	plainEnvelope = &transport.Envelope{}
	// chunkEnvelope makes each event a chunk of its own, ready to be written to the connection.
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

// Claims reports whether r came over HTTP/1 and asks for no WebSocket. Other upgrades are ignored, as RFC 9110, section 7.8, allows.
func (Server) Claims(r *http.Request) bool {
	if r.ProtoMajor != 1 {
		return false
	}
	for _, v := range r.Header.Values("Upgrade") {
		for protocol := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(protocol), "websocket") {
				return false
			}
		}
	}
	return true
}

// Accept is that of [transport.Server]. A stream that is not Detached is one of [transport.OpenResponse].
func (s Server) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	h, ok := w.(http.Hijacker)
	lean := ok && !s.DisableTakeover && canTakeOver(r) && w.Header().Get("Content-Encoding") == ""
	envelope := plainEnvelope
	if lean {
		envelope = chunkEnvelope
	}
	encoder, err := transport.Negotiate(w, r, o, envelope)
	if err != nil {
		return nil, err
	}
	if lean {
		// What is dropped are bytes that the client has sent behind its request: the answer closes the connection, and a
		// client that pipelines must be ready to ask again (RFC 9112, section 9.3.2).
		if conn, _, err := h.Hijack(); err == nil {
			return takeOver(conn, w.Header(), encoder, o.WriteTimeoutOrDefault()), nil
		}
		encoder = encoder.WithEnvelope(plainEnvelope) // middleware said that it can be hijacked, and what it wraps can't
	}
	return transport.OpenResponse(w, r, o, encoder)
}
