package chunked

import (
	"bytes"
	"net"
	"net/http"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// canTakeOver reports whether the answer to r can be written by hand: an HTTP/1.1 client that has sent all it will send.
func canTakeOver(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoAtLeast(1, 1) && r.Method == http.MethodGet &&
		r.ContentLength == 0 && len(r.TransferEncoding) == 0 && r.Header.Get("Expect") == ""
}

// takeOver answers on conn with status 200 and header, and returns the stream. Where that can't be written the stream is broken from
// the start.
func takeOver(conn net.Conn, header http.Header, encoder *transport.Encoder, timeout time.Duration) *transport.Stream {
	connio.TuneTCP(conn)
	s := newStream(conn, timeout)
	coding := encoder.NewStreamCoding()
	if s.Send([][]byte{append(head(header), coding.Header()...)}) == nil {
		s.coding = coding // not before: the head is no frame
		go s.readLoop()
	}
	return &transport.Stream{Sender: s, Encoder: encoder, Done: s.done, Detached: true}
}

// framingHeaders say how the response is framed, which is not for the caller to choose.
var framingHeaders = map[string]bool{
	"Connection": true, "Content-Length": true, "Keep-Alive": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// head returns the status line and the headers. Names that are no tokens are left out, and line breaks in values become spaces, as
// net/http does it.
func head(h http.Header) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.WriteSubset(&b, framingHeaders) // a Buffer takes everything
	if _, ok := h["Date"]; !ok {
		b.WriteString("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n")
	}
	b.WriteString("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
	return b.Bytes()
}
