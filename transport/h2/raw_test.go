package h2

import (
	"bytes"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/listwatch/listwatch/transport/transporttest"
)

// A rawPeer is one end of an HTTP/2 connection that does what the test says, frame by frame. It acknowledges SETTINGS and PING, and
// gives no window back by itself.
type rawPeer struct {
	*testing.T
	conn    net.Conn
	framer  *http2.Framer
	headers bytes.Buffer
	encoder *hpack.Encoder
	fields  map[uint32]map[string]string // of the HEADERS that came, by stream
	data    map[uint32]int               // bytes of DATA that came, by stream
}

func newRawPeer(t *testing.T, conn net.Conn) *rawPeer {
	p := &rawPeer{
		T: t, conn: conn, framer: http2.NewFramer(conn, conn),
		fields: map[uint32]map[string]string{}, data: map[uint32]int{},
	}
	p.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.encoder = hpack.NewEncoder(&p.headers)
	t.Cleanup(func() { conn.Close() })
	return p
}

// rawClient connects to site and sends the preface and settings.
func rawClient(t *testing.T, site *transporttest.Site, settings ...http2.Setting) *rawPeer {
	t.Helper()
	conn, err := site.Network.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	p := newRawPeer(t, conn)
	_, err = io.WriteString(conn, http2.ClientPreface)
	p.must(err)
	p.must(p.framer.WriteSettings(settings...))
	return p
}

// rawServer takes the next connection of l, reads the preface and sends settings.
func rawServer(t *testing.T, l net.Listener, settings ...http2.Setting) *rawPeer {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p := newRawPeer(t, conn)
	_, err = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
	p.must(err)
	p.must(p.framer.WriteSettings(settings...))
	return p
}

func (p *rawPeer) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *rawPeer) block(fields ...string) []byte {
	p.headers.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.must(p.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	return p.headers.Bytes()
}

// get opens a stream.
func (p *rawPeer) get(stream uint32) {
	p.Helper()
	p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, EndStream: true,
		BlockFragment: p.block(":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/things?watch=1"),
	}))
}

// answer sends the headers of a stream.
func (p *rawPeer) answer(stream uint32, end bool) {
	p.Helper()
	p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, EndStream: end, BlockFragment: p.block(":status", "200", "content-type", "application/json"),
	}))
}

// read returns the next frame that is neither SETTINGS nor PING nor WINDOW_UPDATE. Frames are valid until the next read.
func (p *rawPeer) read() http2.Frame {
	p.Helper()
	for {
		f, err := p.framer.ReadFrame()
		p.must(err)
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				p.must(p.framer.WriteSettingsAck())
			}
			continue
		case *http2.PingFrame:
			if !f.IsAck() {
				p.must(p.framer.WritePing(true, f.Data))
			}
			continue
		case *http2.WindowUpdateFrame:
			continue
		case *http2.MetaHeadersFrame:
			fields := map[string]string{}
			for _, h := range f.Fields {
				fields[h.Name] = h.Value
			}
			p.fields[f.StreamID] = fields
		case *http2.DataFrame:
			p.data[f.StreamID] += len(f.Data())
		}
		return f
	}
}

// readUntil reads frames until one is as wanted.
func (p *rawPeer) readUntil(wanted func(http2.Frame) bool) http2.Frame {
	p.Helper()
	for {
		if f := p.read(); wanted(f) {
			return f
		}
	}
}

func isHeaders(stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool { return is[*http2.MetaHeadersFrame](f) && f.Header().StreamID == stream }
}

func isReset(stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool { return is[*http2.RSTStreamFrame](f) && f.Header().StreamID == stream }
}

func isEnd(stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		d, ok := f.(*http2.DataFrame)
		return ok && d.StreamID == stream && d.StreamEnded()
	}
}

func is[T http2.Frame](f http2.Frame) bool {
	_, ok := f.(T)
	return ok
}
