package cases

import (
	"bytes"
	"io"
	"net"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An h2Peer is one end of an HTTP/2 connection with any number of streams. It acknowledges SETTINGS and PING and gives no window back
// unless the case does.
type h2Peer struct {
	*env
	conn   net.Conn
	framer *http2.Framer
	data   map[uint32][]byte // what came of each stream
}

func (e *env) newH2Peer(c net.Conn) *h2Peer {
	p := &h2Peer{env: e, conn: c, framer: http2.NewFramer(c, c), data: map[uint32][]byte{}}
	p.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return p
}

// h2Peer connects to the server as a client.
func (e *env) h2Peer(settings ...http2.Setting) *h2Peer {
	e.Helper()
	p := e.newH2Peer(e.connect("h2"))
	_, err := io.WriteString(p.conn, http2.ClientPreface)
	p.must(err)
	p.must(p.framer.WriteSettings(settings...))
	return p
}

func (p *h2Peer) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// watch opens a stream that is a watch.
func (p *h2Peer) watch(stream uint32, query string) {
	p.Helper()
	p.must(p.request(stream, "watch=1&"+query))
}

// request opens a stream, and does not wait for the answer.
func (p *h2Peer) request(stream uint32, query string) error {
	return p.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, EndStream: true, BlockFragment: p.h2Request(query),
	})
}

// h2Request returns the fields of a request.
func (e *env) h2Request(query string) []byte {
	target := e.watched(query)
	fields := []string{":method", "GET", ":scheme", target.Scheme, ":authority", target.Host, ":path", target.RequestURI()}
	all := pairs(e.Header)
	for i := 0; i < len(all); i += 2 {
		fields = append(fields, strings.ToLower(all[i]), all[i+1])
	}
	return fieldBlock(fields...)
}

// fieldBlock encodes pairs of names and values.
func fieldBlock(fields ...string) []byte {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // a Buffer takes everything
	}
	return block.Bytes()
}

// next returns the next frame. It is valid until the one after it.
func (p *h2Peer) next() http2.Frame {
	p.Helper()
	f, err := p.framer.ReadFrame()
	p.must(err)
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			p.must(p.framer.WriteSettingsAck())
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			p.must(p.framer.WritePing(true, f.Data))
		}
	case *http2.DataFrame:
		p.data[f.StreamID] = append(p.data[f.StreamID], f.Data()...)
	}
	return f
}

// until reads frames up to one that is wanted.
func (p *h2Peer) until(wanted func(http2.Frame) bool) http2.Frame {
	p.Helper()
	for {
		if f := p.next(); wanted(f) {
			return f
		}
	}
}

// widen opens the connection's window, so that each stream has its own alone: the 65,535 bytes of RFC 9113, section 6.9.2, are less than one
// event for each of the streams that a connection may have.
func (p *h2Peer) widen() {
	p.Helper()
	p.must(p.framer.WriteWindowUpdate(0, 1<<30))
}

// barrier returns when the server has done all that was asked of it so far: what it writes for that comes before the answer to a second
// ping, while the answer to a first one may overtake it.
func (p *h2Peer) barrier() {
	p.Helper()
	for i := range byte(2) {
		ping := [8]byte{'b', i}
		p.must(p.framer.WritePing(false, ping))
		p.until(func(f http2.Frame) bool {
			ack, ok := f.(*http2.PingFrame)
			return ok && ack.IsAck() && ack.Data == ping
		})
	}
}

// events returns how many events of a stream have come whole.
func (p *h2Peer) events(stream uint32) int { return bytes.Count(p.data[stream], []byte("\n")) }

// wantEvents reads until so many events of a stream have come.
func (p *h2Peer) wantEvents(stream uint32, n int) {
	p.Helper()
	for p.events(stream) < n {
		if f := p.next(); isResetOf(stream)(f) {
			p.Fatalf("stream %d was reset after %d bytes, want %d events", stream, len(p.data[stream]), n)
		}
	}
}

func isHeadersOf(stream uint32) func(http2.Frame) bool { return isFrame(http2.FrameHeaders, stream) }

func isResetOf(stream uint32) func(http2.Frame) bool { return isFrame(http2.FrameRSTStream, stream) }

func isFrame(t http2.FrameType, stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool { return f.Header().Type == t && f.Header().StreamID == stream }
}
