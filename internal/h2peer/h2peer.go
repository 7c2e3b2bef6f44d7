package h2peer

import (
	"bytes"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A Test is the part of a testing.TB that a [Peer] needs.
type Test interface {
	// Helper marks the caller as a helper of the test.
	Helper()
	// Fatal fails the test and stops it.
	Fatal(args ...any)
}

// A Peer is one end of an HTTP/2 connection. Its methods stop the test if the connection
// fails. It must be used by one goroutine only.
type Peer struct {
	// Conn is the connection. The Peer does not close it.
	Conn net.Conn
	// Framer reads and writes the frames. Write with the Framer, but read with Peer.Read.
	Framer *http2.Framer
	// Fields holds the fields of the last HEADERS that Read returned, by stream.
	Fields map[uint32]map[string]string
	// Data holds the DATA that Read returned, by stream.
	Data map[uint32][]byte

	test Test
}

// Client returns the client's end of conn. It writes the connection preface and settings.
func Client(t Test, conn net.Conn, settings ...http2.Setting) *Peer {
	t.Helper()
	p := newPeer(t, conn)
	_, err := io.WriteString(conn, http2.ClientPreface)
	p.Must(err)
	p.Must(p.Framer.WriteSettings(settings...))
	return p
}

// Server returns the server's end of conn. It reads the connection preface and writes settings.
func Server(t Test, conn net.Conn, settings ...http2.Setting) *Peer {
	t.Helper()
	p := newPeer(t, conn)
	_, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
	p.Must(err)
	p.Must(p.Framer.WriteSettings(settings...))
	return p
}

func newPeer(t Test, conn net.Conn) *Peer {
	p := &Peer{
		Conn: conn, Framer: http2.NewFramer(conn, conn),
		Fields: map[uint32]map[string]string{}, Data: map[uint32][]byte{}, test: t,
	}
	p.Framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return p
}

// Must stops the test if err is not nil.
func (p *Peer) Must(err error) {
	p.test.Helper()
	if err != nil {
		p.test.Fatal(err)
	}
}

// Request writes the HEADERS of a request without a body. fields are pairs of names and values.
func (p *Peer) Request(stream uint32, fields ...string) error {
	return p.Framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, EndStream: true, BlockFragment: HeaderBlock(fields...),
	})
}

// Respond writes the HEADERS of a response whose body follows. fields are pairs of names and
// values.
func (p *Peer) Respond(stream uint32, fields ...string) error {
	return p.Framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, BlockFragment: HeaderBlock(fields...),
	})
}

// HeaderBlock encodes pairs of names and values with HPACK.
func HeaderBlock(fields ...string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		// A bytes.Buffer returns no error.
		_ = encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return block.Bytes()
}

// Read returns the next frame, of any type. It acknowledges SETTINGS and PING, and records
// HEADERS in Fields and DATA in Data. The frame is valid until the next Read.
func (p *Peer) Read() http2.Frame {
	p.test.Helper()
	frame, err := p.Framer.ReadFrame()
	p.Must(err)
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			p.Must(p.Framer.WriteSettingsAck())
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			p.Must(p.Framer.WritePing(true, f.Data))
		}
	case *http2.MetaHeadersFrame:
		fields := map[string]string{}
		for _, h := range f.Fields {
			fields[h.Name] = h.Value
		}
		p.Fields[f.StreamID] = fields
	case *http2.DataFrame:
		p.Data[f.StreamID] = append(p.Data[f.StreamID], f.Data()...)
	}
	return frame
}

// ReadUntil reads frames until match returns true for one, and returns that frame.
func (p *Peer) ReadUntil(match func(http2.Frame) bool) http2.Frame {
	p.test.Helper()
	for {
		if f := p.Read(); match(f) {
			return f
		}
	}
}

// IsHeaders matches the HEADERS of a stream.
func IsHeaders(stream uint32) func(http2.Frame) bool { return is(http2.FrameHeaders, stream) }

// IsReset matches the RST_STREAM of a stream.
func IsReset(stream uint32) func(http2.Frame) bool { return is(http2.FrameRSTStream, stream) }

func is(kind http2.FrameType, stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool { return f.Header().Type == kind && f.Header().StreamID == stream }
}

// IsEnd matches the DATA that ends a stream.
func IsEnd(stream uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		d, ok := f.(*http2.DataFrame)
		return ok && d.StreamID == stream && d.StreamEnded()
	}
}

// Is matches frames of the type T, such as *http2.GoAwayFrame.
func Is[T http2.Frame](f http2.Frame) bool {
	_, ok := f.(T)
	return ok
}
