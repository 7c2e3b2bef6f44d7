package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/listwatch/listwatch/internal/h2peer"
)

// http2Request sends one request, frame by frame, on an HTTP/2 connection of its own.
type http2Request struct {
	framer *http2.Framer
	data   []byte // payload of DATA frames that Read has not returned yet
	ended  bool   // END_STREAM has been received
}

// RequestHTTP2 sends a request over c with prior knowledge of HTTP/2. It returns the
// response when its headers have been received.
func (e *Env) RequestHTTP2(c net.Conn, method, target string, header []string) *Response {
	e.Helper()
	target, header = e.complete(target, header)
	r := &http2Request{framer: http2.NewFramer(c, c)}
	r.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := r.send(c, e.URL.Scheme, method, target, header); err != nil {
		e.Fatal(err)
	}
	head, err := r.readHeaders()
	if err != nil {
		e.Fatalf("read the response headers: %v", err)
	}
	a := &Response{Env: e, Headers: http.Header{}, Body: bufio.NewReader(r)}
	if a.Status, err = strconv.Atoi(head.PseudoValue("status")); err != nil {
		e.Fatal(err)
	}
	for _, f := range head.RegularFields() {
		a.Headers.Add(f.Name, f.Value)
	}
	return a
}

const streamID = 1

func (h *http2Request) send(c net.Conn, scheme, method, target string, header []string) error {
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return err
	}
	if err := h.framer.WriteSettings(); err != nil {
		return err
	}
	fields := []string{":method", method, ":scheme", scheme, ":path", target}
	for i := 0; i < len(header); i += 2 {
		switch name := strings.ToLower(header[i]); {
		case name == "host":
			fields = append(fields, ":authority", header[i+1])
		case header[i+1] != "":
			fields = append(fields, name, header[i+1])
		}
	}
	return writeHead(h.framer, h2peer.HeaderBlock(fields...))
}

// minMaxFrameSize is the frame size that every peer must accept (RFC 9113, section 4.2).
const minMaxFrameSize = 16 << 10

// writeHead writes the header block of a request without a body. If the block is too large for one
// frame, CONTINUATION frames carry the rest.
func writeHead(f *http2.Framer, block []byte) error {
	first := block[:min(len(block), minMaxFrameSize)]
	block = block[len(first):]
	err := f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: streamID, BlockFragment: first, EndHeaders: len(block) == 0, EndStream: true,
	})
	for err == nil && len(block) > 0 {
		part := block[:min(len(block), minMaxFrameSize)]
		block = block[len(part):]
		err = f.WriteContinuation(streamID, len(block) == 0, part)
	}
	return err
}

func (h *http2Request) readHeaders() (*http2.MetaHeadersFrame, error) {
	for {
		f, err := h.readFrame()
		if err != nil {
			return nil, err
		}
		if headers, ok := f.(*http2.MetaHeadersFrame); ok {
			h.ended = headers.StreamEnded()
			return headers, nil
		}
	}
}

// readFrame reads a frame, acknowledges SETTINGS and PING frames, and turns RST_STREAM and
// GOAWAY frames into errors.
func (h *http2Request) readFrame() (http2.Frame, error) {
	f, err := h.framer.ReadFrame()
	if err != nil {
		return nil, err
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			err = h.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			err = h.framer.WritePing(true, f.Data)
		}
	case *http2.RSTStreamFrame:
		err = fmt.Errorf("the server reset the stream: %v", f.ErrCode)
	case *http2.GoAwayFrame:
		err = fmt.Errorf("the server sent GOAWAY: %v", f.ErrCode)
	}
	return f, err
}

// Read returns the payload of DATA frames, and sends WINDOW_UPDATE frames for it.
func (h *http2Request) Read(p []byte) (int, error) {
	for len(h.data) == 0 {
		if h.ended {
			return 0, io.EOF
		}
		f, err := h.readFrame()
		if err != nil {
			return 0, err
		}
		d, ok := f.(*http2.DataFrame)
		if !ok {
			continue
		}
		h.data, h.ended = bytes.Clone(d.Data()), d.StreamEnded()
		if n := d.Length; n > 0 && !h.ended {
			if err := h.framer.WriteWindowUpdate(0, n); err != nil {
				return 0, err
			}
			if err := h.framer.WriteWindowUpdate(streamID, n); err != nil {
				return 0, err
			}
		}
	}
	n := copy(p, h.data)
	h.data = h.data[n:]
	return n, nil
}
