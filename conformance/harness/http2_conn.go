package harness

import (
	"bytes"
	"io"
	"net"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An HTTP2Conn is one end of an HTTP/2 connection with any number of streams. It
// acknowledges SETTINGS and PING frames. The case must send WINDOW_UPDATE frames itself.
type HTTP2Conn struct {
	*Env
	Conn   net.Conn
	Framer *http2.Framer
	Data   map[uint32][]byte // DATA received so far, by stream
}

// NewHTTP2Conn returns an HTTP2Conn on c. It does not send the connection preface.
func (e *Env) NewHTTP2Conn(c net.Conn) *HTTP2Conn {
	p := &HTTP2Conn{Env: e, Conn: c, Framer: http2.NewFramer(c, c), Data: map[uint32][]byte{}}
	p.Framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return p
}

// DialHTTP2 connects to the server as a client and sends the preface with the given
// settings.
func (e *Env) DialHTTP2(settings ...http2.Setting) *HTTP2Conn {
	e.Helper()
	p := e.NewHTTP2Conn(e.Connect("h2"))
	_, err := io.WriteString(p.Conn, http2.ClientPreface)
	p.Must(err)
	p.Must(p.Framer.WriteSettings(settings...))
	return p
}

// Must ends the case if err is not nil.
func (h *HTTP2Conn) Must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// Watch opens a stream with a watch request.
func (h *HTTP2Conn) Watch(stream uint32, query string) {
	h.Helper()
	h.Must(h.Request(stream, "watch=1&"+query))
}

// Request opens a stream with a GET request and does not wait for the response.
func (h *HTTP2Conn) Request(stream uint32, query string) error {
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
	return EncodeFields(fields...)
}

// EncodeFields returns the HPACK encoding of pairs of names and values.
func EncodeFields(fields ...string) []byte {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		// Writing to a bytes.Buffer never fails.
		_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return block.Bytes()
}

// NextFrame returns the next frame. The frame is valid until the next call.
func (h *HTTP2Conn) NextFrame() http2.Frame {
	h.Helper()
	f, err := h.Framer.ReadFrame()
	h.Must(err)
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			h.Must(h.Framer.WriteSettingsAck())
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			h.Must(h.Framer.WritePing(true, f.Data))
		}
	case *http2.DataFrame:
		h.Data[f.StreamID] = append(h.Data[f.StreamID], f.Data()...)
	}
	return f
}

// ReadUntil reads frames until match returns true, and returns the matching frame.
func (h *HTTP2Conn) ReadUntil(match func(http2.Frame) bool) http2.Frame {
	h.Helper()
	for {
		if f := h.NextFrame(); match(f) {
			return f
		}
	}
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
		if f := h.NextFrame(); IsResetOf(stream)(f) {
			h.Fatalf("stream %d was reset after %d bytes, want %d events", stream, len(h.Data[stream]), n)
		}
	}
}

// IsHeadersOf returns a function that matches the HEADERS frames of a stream.
func IsHeadersOf(stream uint32) func(http2.Frame) bool { return isFrame(http2.FrameHeaders, stream) }

// IsResetOf returns a function that matches the RST_STREAM frame of a stream.
func IsResetOf(stream uint32) func(http2.Frame) bool { return isFrame(http2.FrameRSTStream, stream) }

func isFrame(t http2.FrameType, stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool { return f.Header().Type == t && f.Header().StreamID == stream }
}

// HTTP2StreamWindow is the initial flow-control window of a stream if no SETTINGS change it
// (RFC 9113, section 6.9.2).
const HTTP2StreamWindow = 65535
