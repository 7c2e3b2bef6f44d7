package benchmarks

import (
	"bufio"
	"bytes"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A frameReader is a lean HTTP/2 client with many watches on one connection. It sends all window
// updates that are due after a read in one write. The client of net/http writes each of them
// separately.
type frameReader struct {
	conn    net.Conn
	in      *bufio.Reader
	framer  *http2.Framer
	out     bytes.Buffer
	refresh int
	unread  map[uint32]int // by stream, the bytes that were received since the last window update
	stalled uint32         // a stream that is not counted, and whose window is never refreshed
}

// openFrames opens the watches of one connection with a frameReader. The watches have consecutive
// numbers, starting with first.
func (l loadSpec) openFrames(first int, c *counter) error {
	r, err := l.newFrameReader(first, c)
	if err != nil {
		return err
	}
	go func() {
		for {
			if _, err := r.next(c); err != nil {
				return
			}
		}
	}()
	return nil
}

func (l loadSpec) newFrameReader(first int, c *counter) (*frameReader, error) {
	conn, err := l.dial("h2", c)
	if err != nil {
		return nil, err
	}
	r := &frameReader{
		conn: conn, in: bufio.NewReaderSize(conn, 64<<10), refresh: l.Clients.Refresh,
		unread: map[uint32]int{},
	}
	r.framer = http2.NewFramer(&r.out, r.in)
	r.framer.SetReuseFrames()
	r.out.WriteString(http2.ClientPreface)
	r.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(16 * r.refresh)})
	r.framer.WriteWindowUpdate(0, 1<<30)
	// Encode all requests with one encoder, as other clients do, so that later requests refer to
	// the headers of the first one in HPACK's dynamic table.
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range l.Clients.Streams {
		block.Reset()
		for _, f := range l.Clients.header(first + i) {
			encoder.WriteField(f)
		}
		r.framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: !l.Clients.Tunnels,
		})
	}
	for responses := 0; responses < l.Clients.Streams; {
		f, err := r.next(c)
		if err != nil {
			return nil, err
		}
		if f == http2.FrameHeaders {
			responses++
		}
	}
	return r, nil
}

// header returns the header of the request for the watch with the given number.
func (c clients) header(number int) []hpack.HeaderField {
	header := []hpack.HeaderField{
		{Name: ":method", Value: "GET"},
		{Name: ":scheme", Value: "http"},
		{Name: ":authority", Value: "bench"},
		{Name: ":path", Value: c.target(number)},
	}
	if c.Tunnels {
		header[0].Value = "CONNECT"
		header = append(header, hpack.HeaderField{Name: ":protocol", Value: "websocket"},
			hpack.HeaderField{Name: "sec-websocket-version", Value: "13"})
	}
	return header
}

// next reads a frame and counts its events. Before it waits for further bytes, it writes the
// frames in out.
func (r *frameReader) next(c *counter) (http2.FrameType, error) {
	if r.in.Buffered() == 0 && r.out.Len() > 0 {
		if _, err := io.Copy(r.conn, &r.out); err != nil {
			return 0, err
		}
	}
	f, err := r.framer.ReadFrame()
	if err != nil {
		return 0, err
	}
	switch f := f.(type) {
	case *http2.DataFrame:
		r.consume(0, len(f.Data()))
		if f.StreamID == r.stalled {
			break
		}
		r.consume(f.StreamID, len(f.Data()))
		if marks := bytes.Count(f.Data(), []byte{mark}); marks > 0 {
			c.add(marks)
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			r.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			r.framer.WritePing(true, f.Data)
		}
	}
	return f.Header().Type, nil
}

// consume counts n bytes received on a stream, or on the connection if stream is zero. After
// r.refresh bytes it refreshes the window.
func (r *frameReader) consume(stream uint32, n int) {
	if r.unread[stream] += n; r.unread[stream] >= r.refresh {
		r.framer.WriteWindowUpdate(stream, uint32(r.unread[stream]))
		r.unread[stream] = 0
	}
}
