package harness

import (
	"bytes"
	"io"
	"net"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An HTTP2Conn is one end of an HTTP/2 connection with any number of streams. It acknowledges SETTINGS and PING and gives no window back
// unless the case does.
type HTTP2Conn struct {
	*Env
	Conn   net.Conn
	Framer *http2.Framer
	Data   map[uint32][]byte // what came of each stream
}

// NewHTTP2Conn returns an end of HTTP/2 on c. Nothing has been sent yet.
func (e *Env) NewHTTP2Conn(c net.Conn) *HTTP2Conn {
	p := &HTTP2Conn{Env: e, Conn: c, Framer: http2.NewFramer(c, c), Data: map[uint32][]byte{}}
	p.Framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return p
}

// DialHTTP2 connects to the server as a client.
func (e *Env) DialHTTP2(settings ...http2.Setting) *HTTP2Conn {
	e.Helper()
	p := e.NewHTTP2Conn(e.Connect("h2"))
	_, err := io.WriteString(p.Conn, http2.ClientPreface)
	p.Must(err)
	p.Must(p.Framer.WriteSettings(settings...))
	return p
}

// Must ends the case if err is not nil.
func (p *HTTP2Conn) Must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// Watch opens a stream that is a watch.
func (p *HTTP2Conn) Watch(stream uint32, query string) {
	p.Helper()
	p.Must(p.Request(stream, "watch=1&"+query))
}

// Request opens a stream, and does not wait for the answer.
func (p *HTTP2Conn) Request(stream uint32, query string) error {
	return p.Framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, EndStream: true, BlockFragment: p.HTTP2RequestFields(query),
	})
}

// HTTP2RequestFields returns the fields of a request.
func (e *Env) HTTP2RequestFields(query string) []byte {
	target := e.WatchURL(query)
	fields := []string{":method", "GET", ":scheme", target.Scheme, ":authority", target.Host, ":path", target.RequestURI()}
	all := HeaderPairs(e.Header)
	for i := 0; i < len(all); i += 2 {
		fields = append(fields, strings.ToLower(all[i]), all[i+1])
	}
	return EncodeFields(fields...)
}

// EncodeFields encodes pairs of names and values.
func EncodeFields(fields ...string) []byte {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // a Buffer takes everything
	}
	return block.Bytes()
}

// NextFrame returns the next frame. It is valid until the one after it.
func (p *HTTP2Conn) NextFrame() http2.Frame {
	p.Helper()
	f, err := p.Framer.ReadFrame()
	p.Must(err)
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			p.Must(p.Framer.WriteSettingsAck())
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			p.Must(p.Framer.WritePing(true, f.Data))
		}
	case *http2.DataFrame:
		p.Data[f.StreamID] = append(p.Data[f.StreamID], f.Data()...)
	}
	return f
}

// ReadUntil reads frames up to one that is wanted.
func (p *HTTP2Conn) ReadUntil(wanted func(http2.Frame) bool) http2.Frame {
	p.Helper()
	for {
		if f := p.NextFrame(); wanted(f) {
			return f
		}
	}
}

// OpenConnectionWindow opens the connection's window, so that each stream has its own alone: the 65,535 bytes of RFC 9113, section 6.9.2, are less than one
// event for each of the streams that a connection may have.
func (p *HTTP2Conn) OpenConnectionWindow() {
	p.Helper()
	p.Must(p.Framer.WriteWindowUpdate(0, 1<<30))
}

// AwaitServer returns when the server has done all that was asked of it so far: what it writes for that comes before the answer to a second
// ping, while the answer to a first one may overtake it.
func (p *HTTP2Conn) AwaitServer() {
	p.Helper()
	for i := range byte(2) {
		ping := [8]byte{'b', i}
		p.Must(p.Framer.WritePing(false, ping))
		p.ReadUntil(func(f http2.Frame) bool {
			ack, ok := f.(*http2.PingFrame)
			return ok && ack.IsAck() && ack.Data == ping
		})
	}
}

// EventCount returns how many events of a stream have come whole.
func (p *HTTP2Conn) EventCount(stream uint32) int { return bytes.Count(p.Data[stream], []byte("\n")) }

// WantEvents reads until so many events of a stream have come.
func (p *HTTP2Conn) WantEvents(stream uint32, n int) {
	p.Helper()
	for p.EventCount(stream) < n {
		if f := p.NextFrame(); IsResetOf(stream)(f) {
			p.Fatalf("stream %d was reset after %d bytes, want %d events", stream, len(p.Data[stream]), n)
		}
	}
}

// IsHeadersOf matches the HEADERS frame of a stream.
func IsHeadersOf(stream uint32) func(http2.Frame) bool { return isFrame(http2.FrameHeaders, stream) }

// IsResetOf matches the RST_STREAM frame of a stream.
func IsResetOf(stream uint32) func(http2.Frame) bool { return isFrame(http2.FrameRSTStream, stream) }

func isFrame(t http2.FrameType, stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool { return f.Header().Type == t && f.Header().StreamID == stream }
}

// HTTP2StreamWindow is the window of a stream where SETTINGS say nothing (RFC 9113 6.9.2).
const HTTP2StreamWindow = 65535
