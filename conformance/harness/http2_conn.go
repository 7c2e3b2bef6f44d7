package harness

import (
	"bytes"
	"strings"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
)

// An HTTP2Conn is one end of an HTTP/2 connection. A case sends its frames one by one, on any
// number of streams.
type HTTP2Conn struct {
	*Env
	*h2peer.Peer
}

// DialHTTP2 connects to the server as a client and sends the preface with the given
// settings.
func (e *Env) DialHTTP2(settings ...http2.Setting) *HTTP2Conn {
	e.Helper()
	return &HTTP2Conn{e, h2peer.Client(e, e.Connect("h2"), settings...)}
}

// Watch opens a stream with a watch request.
func (h *HTTP2Conn) Watch(stream uint32, query string) {
	h.Helper()
	h.Must(h.Get(stream, "watch=1&"+query))
}

// Get opens a stream with a GET request and does not wait for the response.
func (h *HTTP2Conn) Get(stream uint32, query string) error {
	return h.Framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, EndStream: true, BlockFragment: h.HTTP2RequestFields(query),
	})
}

// HTTP2RequestFields returns the encoded header fields of a GET request.
func (e *Env) HTTP2RequestFields(query string) []byte {
	target := e.WatchURL(query)
	fields := []string{
		":method", "GET", ":scheme", target.Scheme, ":authority", target.Host, ":path", target.RequestURI(),
	}
	all := HeaderPairs(e.Header)
	for i := 0; i < len(all); i += 2 {
		fields = append(fields, strings.ToLower(all[i]), all[i+1])
	}
	return h2peer.HeaderBlock(fields...)
}

// OpenConnectionWindow enlarges the flow-control window of the connection so that only the
// windows of the streams limit the server. The default window of 65,535 bytes (RFC 9113,
// section 6.9.2) has no room for one event on each of the streams that a connection may
// have.
func (h *HTTP2Conn) OpenConnectionWindow() {
	h.Helper()
	h.Must(h.Framer.WriteWindowUpdate(0, 1<<30))
}

// AwaitServer waits until the server has processed everything sent so far and has written its
// responses. To find out, AwaitServer sends two pings, because the acknowledgment of the first one
// may overtake the responses.
func (h *HTTP2Conn) AwaitServer() {
	h.Helper()
	for i := range byte(2) {
		ping := [8]byte{'b', i}
		h.Must(h.Framer.WritePing(false, ping))
		h.ReadUntil(func(f http2.Frame) bool {
			ack, ok := f.(*http2.PingFrame)
			return ok && ack.IsAck() && ack.Data == ping
		})
	}
}

// EventCount returns the number of complete events received on a stream.
func (h *HTTP2Conn) EventCount(stream uint32) int { return bytes.Count(h.Data[stream], []byte("\n")) }

// WantEvents reads until n events of a stream have been received.
func (h *HTTP2Conn) WantEvents(stream uint32, n int) {
	h.Helper()
	for h.EventCount(stream) < n {
		if f := h.Read(); h2peer.IsReset(stream)(f) {
			h.Fatalf("stream %d was reset after %d bytes, want %d events", stream, len(h.Data[stream]), n)
		}
	}
}

// HTTP2StreamWindow is the initial flow-control window of a stream if no SETTINGS change it
// (RFC 9113, section 6.9.2).
const HTTP2StreamWindow = 65535
